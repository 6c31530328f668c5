package keys

import (
	"bytes"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/sealed"
	"github.com/lineage-store/lineage/structure"
)

// Kinds of ids in sealed tables.
const (
	contextKind = iota
	runKind
	threadKind
)

var (
	contextPart = sealed.Part{Kind: contextKind}
	runPart     = sealed.Part{Kind: runKind}
	threadPart  = sealed.Part{Kind: threadKind}
)

func rawPart(n int) sealed.Part { return sealed.Part{Size: n} }

// parts has the parts of the keys of each table.
var parts = [256][]sealed.Part{
	TableThreadByTime:       {rawPart(filterSize + timeSize), threadPart},
	TableBranch:             {threadPart},
	TableBranchBySource:     {rawPart(HashPrefix), threadPart},
	TableContext:            {contextPart},
	TableChildOfContext:     {contextPart, contextPart},
	TableForkOfRun:          {runPart, rawPart(8), runPart},
	TableCheckpoint:         {threadPart},
	TableCheckpointBySource: {rawPart(HashPrefix), threadPart},
	TableReflog:             {contextPart},
	TableSummary:            {contextPart},
	TableRunOfThread:        {threadPart, runPart},
	TableTip:                {contextPart},
	TableCutRun:             {runPart},
	TableRemnant:            {contextPart},
	TableRun:                {runPart},
	TableSpan:               {runPart},
	TableThread:             {threadPart},
	TableThreadByEnd:        {{Kind: threadKind, Tail: true}},
	TableLastMessage:        {threadPart},
	TableThreadBySource:     {rawPart(textSize), threadPart},
	TableThreadByTitle:      {rawPart(textSize), threadPart},
	TableBranchOfContext:    {threadPart, contextPart},
	TableContextOfThread:    {threadPart, contextPart},
}

// recordKinds are the kinds of the records in values.
var recordKinds = [256]structure.Kind{
	TableBranch: structure.KindBranch, TableContext: structure.KindContext, TableSpanSet: structure.KindSpanSet,
	TableCheckpoint: structure.KindCheckpoint, TableReflog: structure.KindReflog, TableRemnant: structure.KindRemnant,
	TableSummary: structure.KindSummary, TableThread: structure.KindThread, TableValue: structure.KindValue,
}

// Shape describes the entries for sealed tables.
type Shape struct{}

// Owners implements sealed.Shape.
func (Shape) Owners() []byte { return []byte{TableContext, TableRun, TableThread} }

// Parts implements sealed.Shape.
func (Shape) Parts(first byte) []sealed.Part { return parts[first] }

// References implements sealed.Shape.
func (Shape) References(dst []sealed.Reference, key, value []byte) []sealed.Reference {
	f := idFinder{value: value, found: dst}
	switch table := key[0]; table {
	case TableSpanBySource, TableAlternative, TableTip, TableUsageOfContent:
		v := ReadVarints(value)
		f.ref(ReadRef(&v))
	case TableRun:
		if info, err := ReadRun(structure.RunID{}, value); err == nil {
			f.ref(info.Parent)
			f.id(threadKind, info.Home.Thread)
		}
	default:
		kind := recordKinds[table]
		if kind == 0 {
			break
		}
		if table == TableContext {
			v := ReadVarints(value)
			v.Next()
			v.Next()
			f.at = len(value) - len(v.Rest)
		}
		if r, err := structure.UnmarshalRecord(kind, bytes.Clone(value[f.at:])); err == nil {
			structure.Walk(r, &f)
		}
	}
	return f.found
}

// idFinder finds the ids of a record in its bytes. It implements structure.Fields.
type idFinder struct {
	value []byte
	at    int // end of the last one
	found []sealed.Reference
}

// id finds the next id.
func (f *idFinder) id(kind int, id [16]byte) {
	if id == [16]byte{} {
		return
	}
	if n := bytes.Index(f.value[f.at:], id[:]); n >= 0 {
		f.found = append(f.found, sealed.Reference{Offset: f.at + n, Kind: kind})
		f.at += n + len(id)
	}
}

func (f *idFinder) ref(r structure.SpanRef) {
	if r.Seq != 0 {
		f.id(runKind, r.Run)
	}
}

func (f *idFinder) ID(_ string, of structure.Kind, id *[16]byte) {
	switch of {
	case structure.KindContext:
		f.id(contextKind, *id)
	case structure.KindRun:
		f.id(runKind, *id)
	case structure.KindThread:
		f.id(threadKind, *id)
	}
}

func (f *idFinder) Ref(_ string, ref *structure.SpanRef) { f.ref(*ref) }

func (f *idFinder) Content(string, *content.ID)      {}
func (f *idFinder) Text(string, *string)             {}
func (f *idFinder) OptionalText(string, **string)    {}
func (f *idFinder) Optional(string, *[]byte)         {}
func (f *idFinder) Uint(string, *uint64)             {}
func (f *idFinder) Small(string, *uint8)             {}
func (f *idFinder) Flag(string, *bool)               {}
func (f *idFinder) Time(string, *time.Time)          {}
func (f *idFinder) Count(_ string, given, _ int) int { return given }
func (f *idFinder) Refuse(string)                    {}
func (f *idFinder) Failed() bool                     { return false }
