package screen

import (
	"fmt"
	"sync"
	"time"
)

var clearLine = control("\r\x1b[K")

// Progress is a line at the bottom of a terminal that shows the progress of a task. Without a terminal it writes
// nothing. It is safe for concurrent use.
type Progress struct {
	screen *Screen
	what   string
	format func(n int64) string
	now    func() time.Time

	mu      sync.Mutex
	started time.Time
	shown   time.Time
	wrote   bool
	closed  bool
}

// NewProgress returns a progress line for a screen. format writes amounts.
func NewProgress(s *Screen, what string, format func(int64) string) *Progress {
	return &Progress{screen: s, what: what, format: format, now: time.Now, started: time.Now()}
}

// Show shows how much of a total is done. total is 0 if unknown.
func (p *Progress) Show(done, total int64) {
	if !p.screen.Terminal {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	now := p.now()
	// A short task shows nothing. A long one updates at most ten times a second.
	if now.Sub(p.started) < 300*time.Millisecond || now.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown, p.wrote = now, true
	fmt.Fprintf(p.screen.W, "%s%s", clearLine, Cut(p.line(done, total, now.Sub(p.started)), p.screen.Width-1))
}

func (p *Progress) line(done, total int64, elapsed time.Duration) string {
	line := p.what + "  " + p.format(done)
	if total > 0 {
		line += fmt.Sprintf(" of %s  %d%%", p.format(total), min(done*100/total, 100))
	}
	if seconds := elapsed.Seconds(); seconds > 0 && done > 0 {
		rate := float64(done) / seconds
		line += "  " + p.format(int64(rate)) + "/s"
		if total > done {
			left := time.Duration(float64(total-done) / rate * float64(time.Second)).Round(time.Second)
			line += fmt.Sprintf("  %v left", left)
		}
	}
	return line
}

// Done removes the line. Show shows it again.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove()
}

// Close removes the line for good. Show then does nothing.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.remove()
}

func (p *Progress) remove() {
	if p.wrote {
		fmt.Fprint(p.screen.W, clearLine)
		p.wrote = false
	}
}
