package zframe_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/zframe"
)

// prose returns text of words that repeat.
func prose(random *rand.Rand, size int) []byte {
	var s strings.Builder
	for s.Len() < size {
		f := random.Float64()
		word := rand.New(rand.NewPCG(1, uint64(f*f*f*20_000)))
		for range 2 + word.IntN(9) {
			s.WriteByte(byte('a' + word.IntN(26)))
		}
		s.WriteByte(' ')
	}
	return []byte(s.String()[:size])
}

func withDictionary(t require.TestingT, dict []byte, level zstd.EncoderLevel, crc bool) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(crc), zstd.WithWindowSize(8<<20), zstd.WithEncoderDictRaw(1, dict))
	require.NoError(t, err)
	return e
}

// What was compressed with a dictionary comes back, whatever was decompressed before, and a wrong size is refused.
func TestExpandBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		dict := prose(random, rapid.IntRange(8, 300_000).Draw(t, "dictionary"))
		level := zstd.EncoderLevel(rapid.IntRange(1, 3).Draw(t, "level"))
		e := withDictionary(t, dict, level, rapid.Bool().Draw(t, "checksum"))
		defer e.Close()
		for range rapid.IntRange(1, 4).Draw(t, "frames") {
			var raw []byte
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				n := rapid.IntRange(0, 100_000).Draw(t, "size")
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
					raw = append(raw, prose(random, n)...)
				case 1:
					for range n / 8 {
						raw = append(raw, byte(random.Uint32()))
					}
				case 2:
					raw = append(raw, make([]byte, n)...)
				case 3:
					raw = append(raw, dict[random.IntN(len(dict)):]...)
				}
			}
			if len(raw) == 0 {
				continue
			}
			frame := e.EncodeAll(raw, nil)
			got, err := zframe.ExpandBehind(dict, frame, len(raw))
			require.NoError(t, err)
			require.True(t, string(raw) == string(got))
			for _, wrong := range []int{len(raw) - 1, len(raw) + 1} {
				_, err = zframe.ExpandBehind(dict, frame, wrong)
				require.Error(t, err)
			}
			damaged := append([]byte(nil), frame...)
			damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
			if got, err = zframe.ExpandBehind(dict, damaged, len(raw)); err == nil {
				require.Len(t, got, len(raw))
			}
			_, err = zframe.ExpandBehind(dict, frame[:random.IntN(len(frame))], len(raw))
			require.Error(t, err)
		}
	})
}

// Several goroutines and dictionaries do not disturb each other.
func TestExpandBehindTogether(t *testing.T) {
	var all sync.WaitGroup
	for i := range 4 {
		random := rand.New(rand.NewPCG(uint64(i), 3))
		dict := prose(random, 1000+i)
		e := withDictionary(t, dict, zstd.SpeedDefault, false)
		all.Go(func() {
			for range 50 {
				raw := append(prose(random, 1000), dict...)
				got, err := zframe.ExpandBehind(dict, e.EncodeAll(raw, nil), len(raw))
				if err != nil || string(got) != string(raw) {
					t.Errorf("dictionary %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkExpandBehind compares both ways to decompress with a dictionary. A reader of packs chooses by the size.
func BenchmarkExpandBehind(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	dict := prose(random, 1<<20)
	e := withDictionary(b, dict, zstd.SpeedDefault, false)
	for _, size := range []int{1 << 10, 4 << 10, 16 << 10, 80 << 10} {
		raw := prose(random, size)
		frame := e.EncodeAll(raw, nil)
		b.Run(fmt.Sprint("behind/", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				_, err := zframe.ExpandBehind(dict, frame, size)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprint("dictionary/", size), func(b *testing.B) {
			d := zframe.NewDecoder(1<<21, zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true), zstd.WithDecoderDictRaw(1, dict))
			b.SetBytes(int64(size))
			for b.Loop() {
				_, err := zframe.Expand(d, frame, size)
				require.NoError(b, err)
			}
		})
	}
}
