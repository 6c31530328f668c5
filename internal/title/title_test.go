package title

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func said(messages ...Message) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func TestShown(t *testing.T) {
	user := func(text string) Message { return Message{"user", text} }
	model := func(text string) Message { return Message{"assistant", text} }
	for _, test := range []struct {
		title, source string
		says          []Message
		want          string
	}{
		{"A\n trip", "id", []Message{user("hi")}, "A trip"},
		{" \t", "id", []Message{user("hi")}, "hi"},
		{"", "id", nil, "id"},
		{"", "", nil, ""},
		{"", "id", []Message{model("hello"), user("fix\nthe  build")}, "fix the build"},
		{"", "id", []Message{model("hello"), user(" ")}, "hello"},
		{"", "id", []Message{model(""), user(""), model("x")}, "x"},
		{"", "", []Message{model("1"), model("2"), model("3"), model("4"), user("5")}, "1"},
		{"", "", []Message{user(strings.Repeat("é", 80))}, strings.Repeat("é", 80)},
		{"", "", []Message{user(strings.Repeat("é", 81))}, strings.Repeat("é", 79) + "…"},
		{"", "", []Message{user(strings.Repeat("é", 5000))}, strings.Repeat("é", 79) + "…"},
		{"", "", []Message{user("\xff\xfe" + strings.Repeat("x", 5000))}, strings.Repeat("x", 79) + "…"},
	} {
		got, err := Shown(test.title, test.source, said(test.says...))
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	failed := errors.New("failed")
	_, err := Shown("", "id", func(yield func(Message, error) bool) { yield(Message{}, failed) })
	require.ErrorIs(t, err, failed)
}
