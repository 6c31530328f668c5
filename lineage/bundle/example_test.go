package bundle_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/bundle"
)

// A laptop and a server hold the same conversation. Each sends the other what it lacks.
func Example() {
	dir, err := os.MkdirTemp("", "lineage")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	laptop, err := lineage.Open(ctx, filepath.Join(dir, "laptop"), lineage.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer laptop.Close()
	server, err := lineage.Open(ctx, filepath.Join(dir, "server"), lineage.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	thread, err := laptop.CreateThread(ctx, lineage.ThreadOptions{Title: "Graphs"})
	if err != nil {
		log.Fatal(err)
	}
	main, err := thread.Active(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"What is a DAG?", "And a tree?"} {
		if _, err := main.Extend(ctx, lineage.User(text)); err != nil {
			log.Fatal(err)
		}
		have, err := bundle.Take(ctx, server)
		if err != nil {
			log.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := bundle.Write(ctx, laptop, &b, bundle.WriteOptions{Have: have}); err != nil {
			log.Fatal(err)
		}
		report, err := bundle.Import(ctx, server, &b, bundle.ImportOptions{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.Contexts, "new,", report.Moved, "moved,", report.Spans, "spans")
	}
	here, err := main.Digest(ctx)
	if err != nil {
		log.Fatal(err)
	}
	copied, err := server.Context(ctx, main.ID())
	if err != nil {
		log.Fatal(err)
	}
	there, err := copied.Digest(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(here == there)
	// Output:
	// 1 new, 0 moved, 1 spans
	// 0 new, 1 moved, 1 spans
	// true
}
