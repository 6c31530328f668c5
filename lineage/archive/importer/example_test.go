package importer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

func ExampleImport() {
	dir, err := os.MkdirTemp("", "lineage")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := lineage.Open(ctx, filepath.Join(dir, "store"), lineage.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	export := filepath.Join(dir, "export.jsonl")
	if err := os.WriteFile(export, []byte(`{"messages":[{"role":"user","content":"Is it warm?"}]}`), 0o600); err != nil {
		log.Fatal(err)
	}

	for range 2 {
		report, err := importer.Import(ctx, store, archive.Path(export), importer.Options{UserID: "ada"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.Join(report.Formats, ", "), report.Conversations, report.NewMessages)
	}
	// Output:
	// openai 1 1
	// openai 1 0
}
