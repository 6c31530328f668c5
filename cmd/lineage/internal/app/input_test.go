package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
)

// A head that ends within a character is text all the same, and a character that is cut
// where the text ends is not.
func TestTextIsToldFromItsHead(t *testing.T) {
	for cut := range len("日") {
		head := strings.Repeat("a", HeadSize-cut) + "日"[:cut]
		require.Equal(t, content.TypeText, MediaType("", []byte(head)), cut)
	}
	require.Equal(t, content.TypeBinary, MediaType("", []byte("a"+"日"[:1])))
	require.Equal(t, content.TypeBinary, MediaType("", []byte(strings.Repeat("a", HeadSize-4)+"\xff\xff\xff\xff")))
}
