package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
)

var (
	boltMessages = []byte("messages") // number → parent's number, body
	boltHeads    = []byte("heads")    // history → number of its last message
)

// boltSystem is the simple design on a key-value store: a key per message, with its parent, and a
// key per head.
func boltSystem(durability string) system {
	return system{name: nameBolt, durability: durability, open: func(_ context.Context, dir string) (store, error) {
		s := &boltStore{dir: dir, noSync: durability == normal}
		return s, s.open()
	}}
}

type boltStore struct {
	dir    string
	noSync bool
	db     *bbolt.DB
}

func (s *boltStore) open() (err error) {
	s.db, err = bbolt.Open(filepath.Join(s.dir, "plain.bolt"), 0o600, &bbolt.Options{NoSync: s.noSync, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(boltMessages); err != nil {
			return err
		}
		_, err := tx.CreateBucketIfNotExists(boltHeads)
		return err
	})
}

func (s *boltStore) start(context.Context) (history, error) {
	h := &boltHistory{store: s}
	return h, s.db.Update(func(tx *bbolt.Tx) error { return h.begin(tx, 0) })
}

func (s *boltStore) size() (int64, error) { return diskUse(s.dir) }

func (s *boltStore) close() error { return s.db.Close() }

func (s *boltStore) shut() error { return s.db.Close() }

func (s *boltStore) openAgain(context.Context) error { return s.open() }

type boltHistory struct {
	store *boltStore
	key   []byte // in heads
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (h *boltHistory) begin(tx *bbolt.Tx, head uint64) error {
	heads := tx.Bucket(boltHeads)
	n, err := heads.NextSequence()
	if err != nil {
		return err
	}
	h.key = number(n)
	return heads.Put(h.key, number(head))
}

func (h *boltHistory) add(tx *bbolt.Tx, messages ...[]byte) error {
	heads, all := tx.Bucket(boltHeads), tx.Bucket(boltMessages)
	all.FillPercent = 0.95 // keys ascend
	head := slices.Clone(heads.Get(h.key))
	for _, m := range messages {
		n, err := all.NextSequence()
		if err != nil {
			return err
		}
		if err := all.Put(number(n), append(slices.Clip(head), m...)); err != nil {
			return err
		}
		head = number(n)
	}
	return heads.Put(h.key, head)
}

func (h *boltHistory) extend(_ context.Context, message []byte) error {
	return h.store.db.Update(func(tx *bbolt.Tx) error { return h.add(tx, message) })
}

func (h *boltHistory) load(_ context.Context, messages [][]byte) error {
	for batch := range slices.Chunk(messages, 10_000) {
		if err := h.store.db.Update(func(tx *bbolt.Tx) error { return h.add(tx, batch...) }); err != nil {
			return err
		}
	}
	return nil
}

// walk calls visit for the messages from the head backwards until it returns false.
func (h *boltHistory) walk(tx *bbolt.Tx, visit func(id uint64, body []byte) bool) error {
	all := tx.Bucket(boltMessages)
	for at := tx.Bucket(boltHeads).Get(h.key); ; {
		id := binary.BigEndian.Uint64(at)
		if id == 0 {
			return nil
		}
		v := all.Get(at)
		if v == nil {
			return fmt.Errorf("message %d is missing", id)
		}
		if !visit(id, v[8:]) {
			return nil
		}
		at = v[:8]
	}
}

func (h *boltHistory) fork(_ context.Context, n int) (history, error) {
	f := &boltHistory{store: h.store}
	return f, h.store.db.Update(func(tx *bbolt.Tx) error {
		head := binary.BigEndian.Uint64(tx.Bucket(boltHeads).Get(h.key))
		if n > 0 {
			var ids []uint64
			if err := h.walk(tx, func(id uint64, _ []byte) bool { ids = append(ids, id); return true }); err != nil {
				return err
			}
			head = ids[len(ids)-n]
		}
		return f.begin(tx, head)
	})
}

func (h *boltHistory) read(_ context.Context, last int) (int, error) {
	var bodies [][]byte
	err := h.store.db.View(func(tx *bbolt.Tx) error {
		return h.walk(tx, func(_ uint64, body []byte) bool {
			bodies = append(bodies, slices.Clone(body))
			return last == 0 || len(bodies) < last
		})
	})
	slices.Reverse(bodies)
	return len(bodies), err
}
