package pack

import "github.com/lineage-store/lineage/structure"

// scopes are the threads that were seen, and which of them a run belongs to.
type scopes struct {
	list []scope // the latest last
	runs map[uint32]int
}

func (m *scopes) add(s scope) {
	if n := len(m.list); n == 0 || m.list[n-1] != s {
		m.list = append(m.list, s)
	}
}

// last reports whether a thread was seen last.
func (m *scopes) last(thread structure.ThreadID) bool {
	return len(m.list) > 0 && m.list[len(m.list)-1].thread == thread
}

// find returns the thread that gives an alias its value. It looks through many of
// them once for each run.
func (m *scopes) find(run uint32, a structure.Alias, source string) (scope, bool) {
	const most = 1 << 12
	at, tried := m.runs[run]
	if tried {
		return m.try(at, a, source)
	}
	if m.runs == nil {
		m.runs = map[uint32]int{}
	}
	for i := len(m.list) - 1; i >= 0 && i >= len(m.list)-most; i-- {
		if s, ok := m.try(i, a, source); ok {
			m.runs[run] = i
			return s, true
		}
	}
	m.runs[run] = -1
	return scope{}, false
}

func (m *scopes) try(i int, a structure.Alias, source string) (scope, bool) {
	if i < 0 || aliasOf(m.list[i], source) != a {
		return scope{}, false
	}
	return m.list[i], true
}
