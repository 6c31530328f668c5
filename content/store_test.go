package content

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"maps"

	"github.com/stretchr/testify/require"
)

var errAbsent = errors.New("absent")

// chunkMap stores chunks and nodes in memory.
type chunkMap map[Key][]byte

func (m chunkMap) put(key Key, chunk []byte) error {
	m[key] = bytes.Clone(chunk)
	return nil
}

func (m chunkMap) get(_ context.Context, keys []Key) ([][]byte, error) {
	var all [][]byte
	for _, key := range keys {
		b, ok := m[key]
		if !ok {
			return nil, errAbsent
		}
		all = append(all, b)
	}
	return all, nil
}

// with returns a function that returns b for one key, and otherwise reads the map.
func (m chunkMap) with(key Key, b []byte) GetFunc {
	own := maps.Clone(m)
	own[key] = b
	return own.get
}

func (m chunkMap) cut(t require.TestingT, body []byte) (ID, Root) {
	id, root, err := Cut(context.Background(), bytes.NewReader(body), m.put)
	require.NoError(t, err)
	return id, root
}

func (m chunkMap) build(t require.TestingT, chunks iter.Seq[[]byte]) Root {
	b := NewTreeBuilder(m.put)
	for chunk := range chunks {
		require.NoError(t, b.Add(chunk))
	}
	root, err := b.Finish()
	require.NoError(t, err)
	return root
}

func (m chunkMap) open(root Root) *TreeReader { return OpenTree(context.Background(), root, m.get) }

// tinyChunks yields n different chunks of four bytes.
func tinyChunks(n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range n {
			if !yield(binary.BigEndian.AppendUint32(nil, uint32(i))) {
				return
			}
		}
	}
}

func join(chunks iter.Seq[[]byte]) (body []byte) {
	for chunk := range chunks {
		body = append(body, chunk...)
	}
	return body
}

// chunksOf yields the chunks of a body, each valid until the next.
func chunksOf(t require.TestingT, body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := NewChunker(bytes.NewReader(body))
		for {
			chunk, err := c.Next()
			if err == io.EOF {
				return
			}
			require.NoError(t, err)
			if !yield(chunk) {
				return
			}
		}
	}
}
