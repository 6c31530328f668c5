package screen

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/amount"
	"pgregory.net/rapid"
)

func TestCutAndWrapKeepToTheWidth(t *testing.T) {
	require.Equal(t, "日本…", Cut("日本語です", 5))
	require.Equal(t, "abc", Cut("abc", 3))
	require.Equal(t, "~/a/…c.d", CutMiddle("~/a/bbbbbbbbb/c.d", 8))
	require.Equal(t, "日…語", CutMiddle("日本語です語", 5))
	require.Equal(t, "abc", CutMiddle("abc", 3))
	require.Equal(t, []string{"one two", "three"}, Wrap("one two three", 8))
	require.Equal(t, []string{"abcd", "efgh", "i"}, Wrap("abcdefghi", 4))
	require.Equal(t, []string{"a", "", "b"}, Wrap("a\n\nb\n", 10))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab  日é\n"))).Draw(t, "text")
		width := rapid.IntRange(2, 12).Draw(t, "width")
		require.LessOrEqual(t, Width(Cut(Line(text), width)), width)
		require.LessOrEqual(t, Width(CutMiddle(Line(text), width)), width)
		for _, line := range Wrap(text, width) {
			require.LessOrEqual(t, Width(line), width)
		}
		letters := func(s string) string { return strings.Join(strings.Fields(s), "") }
		require.Equal(t, letters(text), letters(strings.Join(Wrap(text, width), "\n")))
	})
}

func TestTableAligns(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&Screen{W: NewSanitizer(&out)}, "ID", "TITLE")
	table.Row("1", "日本")
	table.Cells(Cell{Text: "200", Style: Bold}, Cell{Text: "two\nlines"})
	require.NoError(t, table.Print())
	require.Equal(t, "ID   TITLE\n1    日本\n200  two lines\n", out.String())

	out.Reset()
	table = NewTable(&Screen{W: NewSanitizer(&out), Width: 14, Colour: true, Terminal: true}, "", "")
	table.Cells(Cell{Text: "x", Style: Red}, Cell{Text: "a long text is cut"})
	require.NoError(t, table.Print())
	require.Equal(t, "\x1b[31mx\x1b[0m  a long tex…\n", out.String())

	out.Reset()
	path := NewTable(&Screen{W: NewSanitizer(&out), Width: 20}, "", "")
	path.Cells(Cell{Text: "x"}, Cell{Text: "/home/ada/projects/store", Path: true})
	require.NoError(t, path.Print())
	require.Equal(t, "x  /home/ad…ts/store\n", out.String())

	out.Reset()
	table = NewTable(&Screen{W: NewSanitizer(&out), Width: 14, Colour: true, Terminal: true}, "", "")
	table.Whole = true
	table.Cells(Cell{Text: "x", Style: Red}, Cell{Text: "a long text is cut"})
	require.NoError(t, table.Print())
	require.Equal(t, "\x1b[31mx\x1b[0m  a long text is cut\n", out.String())
}

// A narrow terminal shows the text in the last column, and not all of the figures before it. A pipe gets everything.
func TestNarrowTable(t *testing.T) {
	for width, want := range map[int]string{
		0:  "ID  MESSAGES  AGENT        TITLE\n1         12  claude-code  日本 the title of a long conversation\n",
		80: "ID  MESSAGES  AGENT        TITLE\n1         12  claude-code  日本 the title of a long conversation\n",
		50: "ID  AGENT        TITLE\n1   claude-code  日本 the title of a long convers…\n",
		30: "ID  TITLE\n1   日本 the title of a long …\n",
		12: "ID  TITLE\n1   日本 th…\n",
	} {
		var out bytes.Buffer
		table := NewTable(&Screen{W: NewSanitizer(&out), Width: width}, "ID", "MESSAGES", "AGENT", "TITLE")
		table.Spare = []string{"COST", "MESSAGES", "AGENT"}
		table.Cells(Cell{Text: "1"}, Cell{Text: "12", Right: true}, Cell{Text: "claude-code"}, Cell{Text: "日本 the title of a long conversation"})
		require.NoError(t, table.Print())
		require.Equal(t, want, out.String(), width)
	}
}

func TestOptionalColumns(t *testing.T) {
	for cost, want := range map[string]string{"": "ID  TITLE\n1   a\n2   b\n", "$3": "ID  COST  TITLE\n1         a\n2   $3    b\n"} {
		var out bytes.Buffer
		table := NewTable(&Screen{W: NewSanitizer(&out)}, "ID", "AGENT", "COST", "TITLE")
		table.Optional = []string{"AGENT", "COST"}
		table.Row("1", "", "", "a")
		table.Row("2", "", cost, "b")
		require.NoError(t, table.Print())
		require.Equal(t, want, out.String())
	}
}

// A long table is printed while it is made, with columns as wide as the first rows need.
func TestLongTable(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&Screen{W: NewSanitizer(&out)}, "ID", "AGENT", "TITLE")
	table.Optional = []string{"AGENT"}
	for i := range 3 * rowsTogether {
		table.Row(strconv.Itoa(i), "", "t")
		require.Equal(t, i+1 >= rowsTogether, out.Len() > 0)
		require.Less(t, len(table.rows), rowsTogether)
	}
	require.Equal(t, 3*rowsTogether, table.Len())
	require.NoError(t, table.Print())
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 3*rowsTogether+2)
	require.Equal(t, []string{"ID   TITLE", "0    t"}, lines[:2])
	require.Equal(t, "999  t", lines[1_000])
	require.Equal(t, "2999  t", lines[3_000])
}

// A row after the first ones may need more width. On a terminal it is still one line.
func TestLaterRowIsCut(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&Screen{W: NewSanitizer(&out), Width: 40}, "ID", "PROJECT", "TITLE")
	for range rowsTogether {
		table.Row("1", "p", "title")
	}
	out.Reset()
	table.Row("1", "a project with a long", "the title of a long conversation")
	require.NoError(t, table.Print())
	require.Equal(t, "1   a project with a long  the title of…\n", out.String())
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestTableThatCannotBeWritten(t *testing.T) {
	for after := range 3 {
		table := NewTable(&Screen{W: NewSanitizer(&failing{after})}, "ID")
		table.Row("1")
		table.Row("2")
		require.ErrorIs(t, table.Print(), io.ErrShortWrite)
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := NewProgress(&Screen{W: NewSanitizer(&out)}, "reading", amount.Bytes[int64])
	p.now, p.started = func() time.Time { return now.Add(time.Minute) }, now
	p.Show(10, 100)
	p.Done()
	require.Empty(t, out.String())

	p.screen = &Screen{W: NewSanitizer(&out), Terminal: true, Width: 80}
	p.Show(30, 90)
	p.Show(40, 90) // too soon after
	require.Equal(t, "\r\x1b[Kreading  30 B of 90 B  33%  0 B/s  2m0s left", out.String())
	p.Done()
	require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"))
	p.shown = now
	p.Close()
	out.Reset()
	p.Show(50, 90)
	require.Empty(t, out.String(), "what comes later stands alone on its line")
}
