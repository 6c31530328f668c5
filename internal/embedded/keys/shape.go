package keys

import (
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
	contextPart = sealed.KeyPart{Kind: contextKind}
	runPart     = sealed.KeyPart{Kind: runKind}
	threadPart  = sealed.KeyPart{Kind: threadKind}
)

func rawPart(n int) sealed.KeyPart { return sealed.KeyPart{Size: n} }

var textPart = sealed.KeyPart{Size: textSize, Text: true}

// parts has the parts of the keys of each table.
var parts = [256][]sealed.KeyPart{
	TableAlternative:        {rawPart(16), rawPart(8), rawPart(8)},
	TableBlock:              {rawPart(HashPrefix)},
	TableChunk:              {rawPart(HashPrefix)},
	TableCommit:             {rawPart(8)},
	TableCommitID:           {rawPart(8)},
	TableErased:             {rawPart(32)},
	TableRequests:           {rawPart(16)},
	TableSpanBySource:       {rawPart(sourcePrefix + homePrefix), rawPart(1), runPart, rawPart(8)},
	TableSpanSet:            {rawPart(16)},
	TableUsageOfContent:     {rawPart(HashPrefix), rawPart(8), rawPart(4)},
	TableThreadByTime:       {rawPart(filterSize), rawPart(timeSize), threadPart},
	TableBranch:             {threadPart},
	TableBranchBySource:     {rawPart(HashPrefix), threadPart},
	TableContext:            {contextPart},
	TableChildOfContext:     {contextPart, contextPart},
	TableForkOfRun:          {runPart, rawPart(8), runPart},
	TableCheckpoint:         {threadPart},
	TableCheckpointBySource: {rawPart(HashPrefix), threadPart},
	TableReflog:             {contextPart, rawPart(8), rawPart(8)},
	TableSummary:            {contextPart, rawPart(8), rawPart(8)},
	TableRunOfThread:        {threadPart, runPart},
	TableTip:                {contextPart},
	TableCutRun:             {runPart},
	TableRemnant:            {contextPart},
	TableRun:                {runPart},
	TableSpan:               {runPart, rawPart(8)},
	TableThread:             {threadPart},
	TableThreadByEnd:        {{Kind: threadKind, Tail: true}},
	TableLastMessage:        {threadPart, rawPart(8)},
	TableThreadBySource:     {textPart, threadPart},
	TableThreadByTitle:      {textPart, threadPart},
	TableBranchOfContext:    {threadPart, contextPart},
	TableContextOfThread:    {threadPart, contextPart},
}

// recordKinds are the kinds of the records in values.
var recordKinds = [256]structure.Kind{
	TableBranch: structure.KindBranch, TableContext: structure.KindContext, TableSpanSet: structure.KindSpanSet,
	TableCheckpoint: structure.KindCheckpoint, TableReflog: structure.KindReflog, TableRemnant: structure.KindRemnant,
	TableSummary: structure.KindSummary, TableThread: structure.KindThread, TableValue: structure.KindValue,
}

var (
	numberField = sealed.Field{Form: sealed.Number}
	timeField   = sealed.Field{Form: sealed.Time}
	runField    = sealed.Field{Form: sealed.Ref, Kind: runKind}
)

func bytesField(n int) sealed.Field { return sealed.Field{Form: sealed.Bytes, Size: n} }

// valueFields are the fields of the values of tables without records.
var valueFields = [256][]sealed.Field{
	TableAlternative:    {runField},
	TableBlock:          {numberField, numberField, numberField, numberField},
	TableChunk:          {numberField, numberField, numberField, numberField},
	TableCommit:         {numberField, numberField},
	TableCommitID:       {bytesField(8)},
	TableLastMessage:    {timeField},
	TableRun:            {runField, numberField, bytesField(32), {Form: sealed.ID, Kind: threadKind}, numberField},
	TableSpan:           {numberField, numberField, bytesField(32)},
	TableTip:            {runField, numberField, numberField},
	TableUsageOfContent: {runField, numberField},
}

// Shape describes the entries for sealed tables.
type Shape struct{}

// Owners implements sealed.Shape.
func (Shape) Owners() []byte { return []byte{TableContext, TableRun, TableThread} }

// Uses implements sealed.Shape.
func (Shape) Uses() (first byte, kind int) { return TableUsageOfContent, runKind }

// Parts implements sealed.Shape.
func (Shape) Parts(first byte) []sealed.KeyPart { return parts[first] }

// Fields implements sealed.Shape.
func (Shape) Fields(dst []sealed.Field, key, value []byte) []sealed.Field {
	table := key[0]
	dst = append(dst, valueFields[table]...)
	kind := recordKinds[table]
	if kind == 0 {
		return dst
	}
	if table == TableContext {
		v := ReadVarints(value)
		v.Next()
		v.Next()
		dst, value = append(dst, numberField, numberField), v.Rest
	}
	if r, err := structure.UnmarshalRecord(kind, value); err == nil {
		f := fieldFinder{dst}
		structure.Walk(r, &f)
		dst = f.found
	}
	return dst
}

// fieldFinder finds the fields of a record. It implements structure.Fields.
type fieldFinder struct{ found []sealed.Field }

func (f *fieldFinder) add(form sealed.Form) { f.found = append(f.found, sealed.Field{Form: form}) }

func (f *fieldFinder) ID(_ string, idKind structure.Kind, id *[16]byte) {
	kind := 0
	switch idKind {
	case structure.KindContext:
		kind = contextKind
	case structure.KindRun:
		kind = runKind
	case structure.KindThread:
		kind = threadKind
	default:
		f.found = append(f.found, bytesField(len(id)))
		return
	}
	f.found = append(f.found, sealed.Field{Form: sealed.ID, Kind: kind})
}

func (f *fieldFinder) Ref(string, *structure.SpanRef) { f.found = append(f.found, runField) }
func (f *fieldFinder) Content(_ string, id *content.ID) {
	f.found = append(f.found, bytesField(len(id)))
}
func (f *fieldFinder) Text(string, *string)             { f.add(sealed.Text) }
func (f *fieldFinder) OptionalText(string, **string)    { f.add(sealed.Optional) }
func (f *fieldFinder) Optional(string, *[]byte)         { f.add(sealed.Optional) }
func (f *fieldFinder) Uint(string, *uint64)             { f.add(sealed.Number) }
func (f *fieldFinder) Small(string, *uint8)             { f.add(sealed.Number) }
func (f *fieldFinder) Flag(string, *bool)               { f.add(sealed.Number) }
func (f *fieldFinder) Time(string, *time.Time)          { f.add(sealed.Time) }
func (f *fieldFinder) Count(_ string, given, _ int) int { f.add(sealed.Number); return given }
func (f *fieldFinder) Refuse(string)                    {}
func (f *fieldFinder) Failed() bool                     { return false }
