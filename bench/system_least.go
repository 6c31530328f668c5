package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path/filepath"
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/structure"
)

// leastSystem does only the unavoidable work of this design: it hashes a message and its history;
// encodes the commit, frames it with a checksum and copies it to a memory-mapped file; takes one
// lock, under which it knows the tips of contexts and, mostly, that content is new; and appends
// index entries to an unsorted buffer under another lock. Its only check is that a context has the
// expected tip. It cannot be read.
//
// Its rounds are like those of the others, so that CPU caches are equally cold.
func (r *run) leastSystem() system {
	return system{name: nameLeast, durability: normal, bare: true, open: func(_ context.Context, dir string) (store, error) {
		file, err := vfs.OS().Create(filepath.Join(dir, "least"))
		if err != nil {
			return nil, err
		}
		return &leastLog{file: file, tips: make(map[structure.ContextID]leastTip)}, nil
	}}
}

type leastLog struct {
	mu      sync.Mutex
	file    vfs.File
	window  vfs.Window
	at, end int64 // end of the data, and of the mapped window
	encoder structure.Encoder
	frame   []byte
	commit  structure.Commit
	tips    map[structure.ContextID]leastTip
	known   [1 << 15]uint64 // a filter with two bits of a word per content
	doubled int             // content that may be known

	queue struct {
		sync.Mutex
		entries []byte
	}
}

// leastTip is the tip of a context.
type leastTip struct {
	at     structure.SpanRef
	digest structure.Digest
}

var errLeastMoved = errors.New("the context stands elsewhere")

// stand moves a context, or creates it if was is zero.
func (l *leastLog) stand(context structure.ContextID, was structure.SpanRef, is leastTip) error {
	if t, ok := l.tips[context]; ok && t.at != was {
		return errLeastMoved
	}
	l.tips[context] = is
	return nil
}

// learn adds content to the filter. A real store would look up content that the filter may already
// have.
func (l *leastLog) learn(id content.ID) {
	h := binary.LittleEndian.Uint64(id[:])
	bits := uint64(1)<<(h>>15&63) | uint64(1)<<(h>>21&63)
	word := &l.known[h%uint64(len(l.known))]
	if *word&bits == bits {
		l.doubled++
	}
	*word |= bits
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const leastWindow = 1 << 20

// write adds a commit with the records, and index entries.
func (l *leastLog) write(now time.Time, records []structure.Record, entries ...[]byte) error {
	l.commit = structure.Commit{Time: now, Records: records}
	payload, _, err := l.encoder.Encode(&l.commit)
	if err != nil {
		return err
	}
	l.frame = append(append(l.frame[:0], make([]byte, 8)...), payload...)
	binary.LittleEndian.PutUint32(l.frame, uint32(len(payload)))
	binary.LittleEndian.PutUint32(l.frame[4:], crc32.Checksum(payload, castagnoli))
	if err := l.put(); err != nil {
		return err
	}
	q := &l.queue
	q.Lock()
	if len(q.entries) > 64<<10 {
		q.entries = q.entries[:0]
	}
	for _, e := range entries {
		q.entries = append(q.entries, e...)
	}
	q.Unlock()
	return nil
}

// put writes the frame to the end of the file, through mapped memory if supported.
func (l *leastLog) put() error {
	size := int64(len(l.frame))
	mapper, ok := l.file.(vfs.Mapper)
	if !ok {
		_, err := l.file.WriteAt(l.frame, l.at)
		l.at += size
		return err
	}
	if l.at+size > l.end {
		if l.window != nil {
			if err := l.window.Close(); err != nil {
				return err
			}
		}
		var err error
		if l.window, err = mapper.Map(l.at, leastWindow); err != nil {
			return err
		}
		l.end = l.at + leastWindow
	}
	err := l.window.WriteAt(l.frame, l.at)
	l.at += size
	return err
}

func (l *leastLog) start(context.Context) (history, error) {
	h := &leastHistory{log: l, context: structure.NewID[structure.ContextID](), at: structure.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 1}}
	return h, l.stand(h.context, structure.SpanRef{}, leastTip{at: h.at})
}

func (l *leastLog) size() (int64, error) { return l.file.Size() }

func (l *leastLog) close() error {
	var err error
	if l.window != nil {
		err = l.window.Close()
	}
	return errors.Join(err, l.file.Close())
}

// leastHistory is the tip of a history. Its records are reused.
type leastHistory struct {
	log     *leastLog
	context structure.ContextID
	at      structure.SpanRef
	digest  structure.Digest

	block   structure.Block
	usages  [1]structure.Usage
	span    structure.Span
	tip     structure.Tip
	records [3]structure.Record
	spans   []structure.SpanRef // what it returned last
}

func (h *leastHistory) extend(_ context.Context, message []byte) error {
	now := time.Now()
	id := content.ID(sha256.Sum256(message))
	h.block = structure.Block{
		Block: content.Block{ID: id, Type: content.TypeText, Size: int64(len(message)), Origin: content.BlockOrigin{Kind: content.OriginUser}, CreatedAt: now},
		Body:  message,
	}
	was := h.at
	h.at.Seq++
	h.usages[0] = structure.Usage{Kind: structure.MessageUsage, Content: id, Role: roleOf(0), CreatedAt: now}
	h.digest = structure.NextDigest(h.digest, h.usages[:])
	h.span = structure.Span{Ref: h.at, Usages: h.usages[:]}
	h.tip = structure.Tip{Context: h.context, Span: h.at}
	h.records = [3]structure.Record{&h.block, &h.span, &h.tip}
	h.spans = []structure.SpanRef{h.at}
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	if err := h.log.stand(h.context, was, leastTip{h.at, h.digest}); err != nil {
		return err
	}
	h.log.learn(id)
	return h.log.write(now, h.records[:], id[:], h.at.Run[:], h.context[:])
}

func (h *leastHistory) load(context.Context, [][]byte) error { return nil } // there are no histories

func (h *leastHistory) fork(context.Context, int) (history, error) {
	now := time.Now()
	fork := &leastHistory{log: h.log, context: structure.NewIDAt[structure.ContextID](now), at: h.at, digest: h.digest}
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	if err := h.log.stand(fork.context, structure.SpanRef{}, leastTip{h.at, h.digest}); err != nil {
		return nil, err
	}
	h.records[0] = &structure.Context{ID: fork.context, Parent: h.context, Base: h.at, Tip: h.at, CreatedAt: now}
	return fork, h.log.write(now, h.records[:1], fork.context[:])
}

func (h *leastHistory) read(context.Context, int) (int, error) { return 0, errors.ErrUnsupported }
