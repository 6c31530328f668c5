package prefetch

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestAnyPointerWillDo(t *testing.T) {
	memory := [256]byte{100: 7}
	Line(unsafe.Pointer(&memory[100]))
	Line(nil)
	Line(unsafe.Add(unsafe.Pointer(&memory), 3)) // in the middle of a line, and of a word
	Bytes(memory[30:])
	Bytes(memory[255:])
	Bytes(memory[256:])
	Bytes(nil)
	require.Equal(t, [256]byte{100: 7}, memory)
	require.Zero(t, testing.AllocsPerRun(10, func() { Bytes(memory[:]) }))
}
