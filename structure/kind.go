package structure

import (
	"strconv"
)

// Kind is the kind of a record. The values are part of the disk format.
type Kind uint8

// The kinds of record.
const (
	KindBlock      Kind = 1
	KindChunk      Kind = 2
	KindThread     Kind = 3
	KindContext    Kind = 4
	KindTip        Kind = 5
	KindRun        Kind = 6
	KindSpan       Kind = 7
	KindSpanSet    Kind = 8
	KindBranch     Kind = 9
	KindCheckpoint Kind = 10
	KindSummary    Kind = 11
	KindReflog     Kind = 12
	KindDeletion   Kind = 13
	KindCut        Kind = 14
	KindValue      Kind = 15
	KindRemnant    Kind = 16
)

var kindNames = [...]string{
	KindBlock: "block", KindChunk: "chunk", KindThread: "thread", KindContext: "context",
	KindTip: "tip", KindRun: "run", KindSpan: "span", KindSpanSet: "span set", KindBranch: "branch",
	KindCheckpoint: "checkpoint", KindSummary: "summary", KindReflog: "reflog entry", KindDeletion: "deletion", KindCut: "cut",
	KindValue: "value", KindRemnant: "remnant",
}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "record kind " + strconv.Itoa(int(k))
}
