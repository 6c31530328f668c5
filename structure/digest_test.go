package structure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

func message(role, name, body string) structure.Usage {
	return structure.Usage{Kind: structure.MessageUsage, Role: role, Name: name, Content: content.Sum([]byte(body))}
}

func document(name string, revision uint64, body string) structure.Usage {
	return structure.Usage{Kind: structure.DocumentUsage, Document: name, Revision: revision, Content: content.Sum([]byte(body))}
}

func asset(name, body string) structure.Usage {
	return structure.Usage{Kind: structure.AssetUsage, Filename: name, Content: content.Sum([]byte(body))}
}

// distinct are spans that must have different digests.
func distinct() map[string][]structure.Usage {
	return map[string][]structure.Usage{
		"no usages":            nil,
		"user":                 {message("user", "", "hi")},
		"assistant":            {message("assistant", "", "hi")},
		"other body":           {message("user", "", "ho")},
		"empty body":           {message("user", "", "")},
		"no role":              {message("", "", "hi")},
		"user named ada":       {message("user", "ada", "hi")},
		"role and name apart":  {message("us", "erada", "hi")},
		"name for role":        {message("", "user", "hi")},
		"role with its length": {message("\x04user", "", "hi")},
		"two messages":         {message("user", "", "hi"), message("assistant", "", "ho")},
		"two messages swapped": {message("assistant", "", "ho"), message("user", "", "hi")},
		"the same twice":       {message("user", "", "hi"), message("user", "", "hi")},
		"document":             {document("user", 0, "hi")},
		"document revised":     {document("user", 1, "hi")},
		"asset":                {asset("user", "hi")},
		"asset without a name": {asset("", "hi")},
		"long name":            {asset(strings.Repeat("n", 300), "hi")},
	}
}

func TestGoldenDigests(t *testing.T) {
	var b strings.Builder
	var history structure.Digest
	fmt.Fprintf(&b, "%v nothing\n", history)
	for _, step := range []struct{ role, name, body string }{
		{"system", "", "be brief"}, {"user", "ada", "question"}, {"assistant", "", "answer"}, {"tool", "tool", "result"},
	} {
		history = structure.NextDigest(history, []structure.Usage{message(step.role, step.name, step.body)})
		fmt.Fprintf(&b, "%v after %s\n", history, step.role)
	}
	for _, name := range []string{"no usages", "user named ada", "two messages", "document revised", "asset", "long name"} {
		fmt.Fprintf(&b, "%v %s\n", structure.NextDigest(structure.Digest{}, distinct()[name]), name)
	}
	requireGolden(t, "digests", b.String())
}

func TestDigestsDistinguishSpans(t *testing.T) {
	seen := map[structure.Digest]string{{}: "the empty history"}
	add := func(d structure.Digest, name string) {
		require.NotContains(t, seen, d, "%s and %s", name, seen[d])
		seen[d] = name
	}
	parent := structure.NextDigest(structure.Digest{}, []structure.Usage{message("system", "", "be brief")})
	for name, usages := range distinct() {
		add(structure.NextDigest(structure.Digest{}, usages), name)
		add(structure.NextDigest(parent, usages), name+" later")
	}
	two := distinct()["two messages"]
	add(structure.NextDigest(structure.NextDigest(structure.Digest{}, two[:1]), two[1:]), "two messages in two spans")
}

// identity is everything that a digest may depend on.
func identity(usages []structure.Usage) string {
	var b strings.Builder
	for _, u := range usages {
		if u.Name == u.Role {
			u.Name = ""
		}
		fmt.Fprintf(&b, "%v %v %q %q %q %d %q %v;", u.Kind, u.Piece, u.Role, u.Name, u.Document, u.Revision, u.Filename, u.Content)
	}
	return b.String()
}

func TestDigestsDependOnWhatIsSaidAlone(t *testing.T) {
	short := rapid.SampledFrom([]string{"", "a", "b", "ab", "\x00", "\x01a"})
	usage := rapid.Custom(func(t *rapid.T) structure.Usage {
		u := structuretest.Usages(rapid.Just(content.ID{})).Draw(t, "usage")
		if u.Kind == structure.MessageUsage {
			u.Role, u.Name = short.Draw(t, "role"), short.Draw(t, "name")
		}
		if u.Kind == structure.PartUsage {
			u.Name = short.Draw(t, "name")
		}
		return u
	})
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(usage, 0, 3).Draw(t, "a")
		b := rapid.SliceOfN(usage, 0, 3).Draw(t, "b")
		same := structure.NextDigest(structure.Digest{}, a) == structure.NextDigest(structure.Digest{}, b)
		require.Equal(t, identity(a) == identity(b), same)

		// Ids, times, origins, types, forms and metadata do not change it.
		other := make([]structure.Usage, len(a))
		for i, u := range a {
			other[i] = structure.Usage{
				Kind: u.Kind, Piece: u.Piece, Content: u.Content, Role: u.Role, Name: u.Name, Document: u.Document, Revision: u.Revision,
				Filename: u.Filename, SourceID: "elsewhere", CreatedAt: u.CreatedAt.Add(time.Hour),
			}
		}
		require.Equal(t, structure.NextDigest(structure.Digest{}, a), structure.NextDigest(structure.Digest{}, other))
	})
}

func TestDigestText(t *testing.T) {
	require.True(t, structure.Digest{}.IsZero())
	d := structure.NextDigest(structure.Digest{}, nil)
	require.False(t, d.IsZero())
	text, err := d.MarshalText()
	require.NoError(t, err)
	require.Equal(t, d.String(), string(text))
	require.Len(t, d.String(), 64)
}
