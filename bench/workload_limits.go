package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"time"

	"github.com/tidwall/btree"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

const workLimits = "what an operation cannot do without"

// limits measures by themselves the parts that no fork or extend of this design
// can leave out. Their sum is the floor under both.
func (r *run) limits(ctx context.Context) error {
	if err := r.calibrate(ctx); err != nil {
		return err
	}
	const times = 2_000
	part := func(name string, one func()) contender {
		return contender{system: name, durability: normal, round: func(context.Context) (int, error) {
			for range times {
				one()
			}
			return times, nil
		}}
	}
	writing := func(name string, bytes int64) (contender, func() error, error) {
		s, err := r.open(ctx, r.writeSystem(normal))
		if err != nil {
			return contender{}, nil, err
		}
		f := s.store.(*bareFile)
		buf := make([]byte, bytes)
		return contender{system: name, durability: normal, round: func(context.Context) (int, error) {
			for range times {
				if err := f.write(buf); err != nil {
					return 0, err
				}
			}
			return times, nil
		}}, s.close, nil
	}
	forkWrite, closeFork, err := writing("fork: write", r.forkBytes)
	if err != nil {
		return err
	}
	defer closeFork() //nolint:errcheck // it is thrown away
	extendWrite, closeExtend, err := writing("extend: write", r.extendBytes)
	if err != nil {
		return err
	}
	defer closeExtend() //nolint:errcheck // it is thrown away

	message := newMessages(&r.config, streamExtend).one()
	at := structure.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 100}
	fork := &structure.Context{
		ID: structure.NewID[structure.ContextID](), Thread: structure.NewID[structure.ThreadID](), Parent: structure.NewID[structure.ContextID](),
		Base: at, Tip: at, CreatedAt: time.Now(),
	}
	block := structure.NewBlock(content.TypeText, content.Origin{Kind: content.OriginUser}, time.Now(), message)
	extend := []structure.Record{
		block,
		&structure.Span{Ref: at, Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: block.ID, Role: "user", CreatedAt: time.Now()}}},
		&structure.Tip{Context: fork.ID, Span: at},
	}
	var checksum uint32 // keeps what is measured from being optimised away
	defer func() { runtime.KeepAlive(checksum) }()
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	var encoder structure.Encoder
	encode := func(records ...structure.Record) func() {
		return func() {
			payload, _, err := encoder.Encode(&structure.Commit{Time: fork.CreatedAt, Records: records})
			if err != nil {
				panic(err) // it is the same commit each time
			}
			checksum += crc32.Checksum(payload, castagnoli)
		}
	}
	return r.compare(ctx, subject{workload: workLimits}, []contender{
		forkWrite,
		part("fork: making an id", func() { fork.ID = structure.NewID[structure.ContextID]() }),
		part("fork: encoding, checksum", encode(fork)),
		part("fork: 4 entries into an ordered index", indexEntries(4, 1+16+16, 60)),
		extendWrite,
		part("extend: SHA-256 of message and history", func() {
			sum := sha256.Sum256(message)
			sum = sha256.Sum256(append(sum[:], sum[:]...))
			checksum += uint32(sum[0])
		}),
		part("extend: encoding, checksum", encode(extend...)),
		part("extend: 3 entries into an ordered index", indexEntries(3, 1+16+8, 12)),
	})
}

// indexEntries puts entries of random keys into an ordered index in memory, as
// whatever is to be found by key and listed in order has to be.
func indexEntries(n, keySize, valueSize int) func() {
	type entry struct{ key, value string }
	less := func(a, b entry) bool { return a.key < b.key }
	tree := btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	var state uint64
	return func() {
		if tree.Len() > 100_000 { // about what an overlay holds
			tree.Clear()
		}
		for range n {
			state += 0x9e3779b97f4a7c15
			z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
			key := make([]byte, keySize)
			binary.BigEndian.PutUint64(key[1:], z^z>>27)
			tree.Set(entry{string(key), string(make([]byte, valueSize))})
		}
	}
}
