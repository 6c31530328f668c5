package sqladapter

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/lineage-store/lineage/internal/query"
)

// SearchSyntax describes how a database stores and finds the data for searches. Each message has a
// row with its terms in lineage_messages and one with its text in messages_fts.
type SearchSyntax struct {
	// Numbered is set if terms and texts are in tables whose rows can only be found by number.
	Numbered bool
	// Counted is set if triggers maintain index rows whatever other programs write. Then lineage_chats has the number
	// of a chat's messages and of those in lineage_messages, and the triggers delete index rows of changed messages
	// and the lengths of chains through them. Otherwise a row of lineage_messages has the version of its message (see
	// Syntax.Version), and messages are counted.
	Counted bool
	// Depths is set if lengths of chains are stored: see Syntax.Epochs.
	Depths bool
	// Unlinked is set if rows of lineage_messages remain after other programs delete messages.
	Unlinked bool
	// Known, Texts and Terms insert rows. Their parameters, if Numbered is set: Known has message, chat, depth, row,
	// whether the text has the same row, card; Texts has row, message, chat, name, text; Terms has row, terms.
	// Otherwise: Known has message, chat, version, terms, card and, if they are stored, depth, epoch; Texts has
	// message, chat, name, text; Terms is empty.
	Known, Texts, Terms Statement
	// Forget is run after chats were deleted or content was erased, because full-text indexes may
	// keep words of deleted rows.
	Forget []Statement
	// Compact is run, outside of a transaction, after rows with erased content were changed,
	// because pages may keep the old bytes.
	Compact []Statement
	// Candidates finds the cards of the messages of a chat that may match. AllCandidates finds those of all chats,
	// each with the id of its chat.
	Candidates, AllCandidates Statement
	// Condition returns the parameters of Candidates, or of AllCandidates if chatID is empty, and the number of
	// repetitions. most is set if most messages belong to the chat, so that a condition on the chat costs more than
	// it saves.
	Condition func(chatID string, most bool, q Condition) (args []any, n int)
}

// Condition is a condition that every match of a query meets and that an index can check: a term of the message, or several
// conditions. With neither, every message meets it.
//
//	Term   string
//	Prefix bool        // the term is the beginning of a word
//	Or     bool        // one of Parts is enough
//	Parts  []Condition
type Condition = query.Condition

// ManyTerms is the term of messages with too many terms to store. Such messages match every term.
const ManyTerms = "manyterms0b6f1c"

// ChatTerm is a term that all messages of a chat have.
func ChatTerm(chatID string) string {
	sum := sha256.Sum256([]byte(chatID))
	return "chat" + hex.EncodeToString(sum[:12])
}
