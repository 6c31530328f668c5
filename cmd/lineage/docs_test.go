package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/sources"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
)

func TestManualIsCurrent(t *testing.T) {
	const path = "../../docs/cli.md"
	want := manual(app.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" }))
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "docs/cli.md is not what the commands say; LINEAGE_UPDATE_GOLDEN=1 rewrites it")
}

// docs/json.md has a section for each type of record, with a row for each field.
func TestRecordsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	sections := make(map[string]string)
	for section := range strings.SplitSeq(string(doc), "\n### ") {
		name, body, _ := strings.Cut(section, "\n")
		sections[strings.Trim(name, "`")] = body
	}
	seen := make(map[string]bool)
	for _, r := range allRecords() {
		name := r.RecordType()
		require.False(t, seen[name], "two records have the type %s", name)
		seen[name] = true
		body, ok := sections[name]
		require.True(t, ok, "docs/json.md has no section for %s", name)
		kind := reflect.TypeOf(r).Elem()
		rows := 0
		for _, f := range reflect.VisibleFields(kind) {
			if f.Anonymous { // its fields are fields of the record
				continue
			}
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			require.NotEmpty(t, field, "%s.%s", name, f.Name)
			require.Contains(t, body, "\n| `"+field+"` |", "section %s of docs/json.md", name)
			rows++
		}
		line, err := records.Encode(r)
		require.NoError(t, err)
		require.True(t, json.Valid(line), "%s", line)
		require.Equal(t, rows, strings.Count(body, "\n| `"), "section %s of docs/json.md has rows for fields that are not there", name)
	}
	for _, c := range app.ExitCodes() {
		require.Contains(t, string(doc), "| "+strconv.Itoa(c.Code)+" |")
	}
}

// Help fits a terminal of 80 columns, its examples one of 100, and another program's word is not one of ours.
func TestHelpFits(t *testing.T) {
	var out bytes.Buffer
	a := app.New(nil, &out, &bytes.Buffer{}, func(string) string { return "" })
	root := root(a)
	app.Each(root, func(c *cobra.Command) {
		out.Reset()
		c.SetOut(&out)
		require.NoError(t, c.Help())
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			width := helpWidth
			if strings.Contains(c.Example, line) {
				width = 100
			}
			assert.LessOrEqual(t, screen.Width(line), width, "%s: %s", c.CommandPath(), line)
		}
		require.False(t, c.Parent() == root && app.Elsewhere[c.Name()] != "", c.Name())
	})
	for word, ours := range app.Elsewhere {
		found, _, err := root.Find(strings.Fields(ours))
		require.NoError(t, err, word)
		require.Equal(t, root.Name()+" "+ours, found.CommandPath())
	}
}

// docs/archives.md says of each format of an agent what its reader was tried on, as 'follow --list' does.
func TestTriedFormatsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/archives.md")
	require.NoError(t, err)
	for _, agent := range follow.Agents() {
		i := slices.IndexFunc(sources.Formats(), func(f archive.Format) bool { return f.Name == agent.Format })
		require.GreaterOrEqual(t, i, 0, "no reader of %s", agent.Format)
		tried := sources.Formats()[i].Tried
		if tried == "" {
			tried = "documents"
		}
		require.Contains(t, string(doc), "| `"+agent.Format+"` | "+tried)
	}
}
