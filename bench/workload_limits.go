package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/memtable"
	"github.com/lineage-store/lineage/structure"
)

const (
	workLimits = "what an operation cannot do without"

	partForkWrite    = "fork: write"
	partForkID       = "fork: making an id"
	partForkEncode   = "fork: encoding, checksum"
	partForkIndex    = "fork: 3 entries that rise, into an ordered index"
	partExtendWrite  = "extend: write"
	partExtendHash   = "extend: SHA-256 of message and history"
	partExtendEncode = "extend: encoding, checksum"
	partExtendIndex  = "extend: 2 entries by hash, into an ordered index"
)

// limits measures separately the unavoidable parts of a fork and an extend. Their sum is the lower
// limit for both.
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
	forkWrite, closeFork, err := writing(partForkWrite, r.forkBytes)
	if err != nil {
		return err
	}
	defer closeFork() //nolint:errcheck // discarded
	extendWrite, closeExtend, err := writing(partExtendWrite, r.extendBytes)
	if err != nil {
		return err
	}
	defer closeExtend() //nolint:errcheck // discarded

	message := newMessages(&r.config, streamExtend).one()
	at := structure.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 100}
	fork := &structure.Context{
		ID: structure.NewID[structure.ContextID](), Thread: structure.NewID[structure.ThreadID](), Parent: structure.NewID[structure.ContextID](),
		Base: at, Tip: at, CreatedAt: time.Now(),
	}
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{Kind: content.OriginUser}, time.Now(), message)
	extend := []structure.Record{
		block,
		&structure.Span{Ref: at, Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: block.ID, Role: "user", CreatedAt: time.Now()}}},
		&structure.Tip{Context: fork.ID, Span: at},
	}
	var checksum uint32 // prevents the compiler from removing the work
	defer func() { runtime.KeepAlive(checksum) }()
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
	err = r.compare(ctx, subject{workload: workLimits}, []contender{
		forkWrite,
		part(partForkID, func() { fork.ID = structure.NewID[structure.ContextID]() }),
		part(partForkEncode, encode(fork)),
		part(partForkIndex, indexEntries(3, 1+16+16, 60, false)),
		extendWrite,
		part(partExtendHash, func() {
			sum := sha256.Sum256(message)
			sum = sha256.Sum256(append(sum[:], sum[:]...))
			checksum += uint32(sum[0])
		}),
		part(partExtendEncode, encode(extend...)),
		part(partExtendIndex, indexEntries(2, 1+16+8, 12, true)),
		waking(times),
	})
	return errors.Join(err, r.limitsOfReading(ctx), r.limitsOfPacking(ctx))
}

// waking measures the time to wake a sleeping goroutine, as for each of many writers after a sync.
func waking(times int) contender {
	return contender{system: "writers: waking one", durability: normal, round: func(context.Context) (int, error) {
		there, back := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(back)
			for range there {
				back <- struct{}{}
			}
		}()
		for range times {
			there <- struct{}{}
			<-back
		}
		close(there)
		<-back
		return 2 * times, nil // there and back
	}}
}

// indexEntries inserts entries into the store's ordered index in memory, one per table. Keys are
// hashes or ascending.
func indexEntries(tables, keySize, valueSize int, hashes bool) func() {
	table, state := memtable.New(), uint64(0)
	key, value := make([]byte, keySize), make([]byte, valueSize)
	return func() {
		if table.Len() > 100_000 { // about the size of an overlay
			table = memtable.New()
		}
		state++
		for i := range tables {
			z := state
			if hashes {
				z = (z*uint64(tables) + uint64(i)) * 0x9e3779b97f4a7c15
				z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
				z ^= z >> 27
			}
			key[0] = 'a' + byte(i)
			binary.BigEndian.PutUint64(key[1:], z)
			table.Set(key, value)
		}
	}
}
