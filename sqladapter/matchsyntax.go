package sqladapter

import "strings"

// MatchSyntax is how a full-text index over terms spells a condition. Terms contain no quotes.
type MatchSyntax struct {
	// Quote is before and after a term, and Prefix follows it if the term is the beginning of a word.
	Quote, Prefix string
	And, Or       string
}

// Condition is like SearchSyntax.Condition, for Candidates with two parameters: the condition on terms, and the id of the chat.
func (s MatchSyntax) Condition(chatID string, most bool, q Condition) (args []any, n int) {
	switch {
	case chatID == "":
		return []any{s.inAny(q)}, 1
	case most && !q.IsAny():
		return []any{s.inAny(q), chatID}, 1
	}
	return []any{s.inChat(chatID, q), chatID}, 1
}

// inChat returns a condition on the messages of a chat.
func (s MatchSyntax) inChat(chatID string, q Condition) string {
	chat := s.Quote + ChatTerm(chatID) + s.Quote
	if q.IsAny() {
		return chat
	}
	return chat + s.And + "(" + s.inAny(q) + ")"
}

// inAny returns a condition on messages of any chat.
func (s MatchSyntax) inAny(q Condition) string {
	var b strings.Builder
	b.WriteString(s.Quote + ManyTerms + s.Quote + s.Or + "(")
	s.write(&b, q)
	b.WriteString(")")
	return b.String()
}

func (s MatchSyntax) write(b *strings.Builder, q Condition) {
	if len(q.Parts) == 0 {
		b.WriteString(s.Quote + q.Term + s.Quote)
		if q.Prefix {
			b.WriteString(s.Prefix)
		}
		return
	}
	operator := s.And
	if q.Or {
		operator = s.Or
	}
	for i, part := range q.Parts {
		if i > 0 {
			b.WriteString(operator)
		}
		b.WriteString("(")
		s.write(b, part)
		b.WriteString(")")
	}
}
