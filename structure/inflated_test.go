package structure_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// A commit that claims more data than it has is refused or decodes to another one, and
// takes no more memory.
func TestInflatedCommits(t *testing.T) {
	payloads := [][]byte{encode(t, messageCommit()), record(structure.KindBlock, tree(70_000)), record(structure.KindBlock, gone(70_000))}
	for i := range 12 {
		payloads = append(payloads, encode(t, structuretest.Commits().Example(i)))
	}
	for _, payload := range payloads {
		step := 1 + len(payload)/300
		for at := 0; at < len(payload); at += step {
			for b := range structuretest.Inflated(payload, at) {
				var err error
				allocated := structuretest.Allocated(func() { _, err = structure.DecodeCommit(b) })
				require.LessOrEqual(t, allocated, uint64(64<<10+64*len(b)), "%x", b)
				if err != nil {
					require.True(t, errors.Is(err, structure.ErrMalformed) || errors.Is(err, structure.ErrUnknownVersion) || errors.Is(err, structure.ErrOldVersion), err)
				}
			}
		}
	}
}

// The same for a block with a right checksum.
func TestInflatedBlocks(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, body := range [][]byte{tree(70_000), gone(70_000)} {
		head := body[:len(body)-4]
		for at := range head {
			for b := range structuretest.Inflated(head, at) {
				payload := record(structure.KindBlock, binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, table)))
				var err error
				allocated := structuretest.Allocated(func() { _, err = structure.DecodeCommit(payload) })
				require.LessOrEqual(t, allocated, uint64(64<<10), "%x", b)
				if err != nil {
					require.True(t, errors.Is(err, structure.ErrMalformed) || errors.Is(err, structure.ErrUnknownVersion) || errors.Is(err, structure.ErrOldVersion), err)
				}
			}
		}
	}
}
