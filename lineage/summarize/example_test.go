package summarize_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/summarize"
)

func ExampleExtractive() {
	summary, err := summarize.Extractive{MaxTokens: 40}.Summarize(context.Background(), []lineage.Passage{
		{Role: "user", Text: "Hello! The nightly export fails since Tuesday. Can you help?"},
		{Role: "assistant", Text: "Sure, let me have a look. The disk of db-2 is full, so the export fails."},
		{Role: "user", Text: "Thanks!"},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(summary.Text)
	// Output:
	// user: The nightly export fails since Tuesday.
	// assistant: The disk of db-2 is full, so the export fails.
}

func ExampleClient() {
	// A server as OPENAI_BASE_URL usually names.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"model":"small","choices":[{"message":{"content":"The export fails: the disk of db-2 is full."}}]}`)
	}))
	defer server.Close()

	client, err := summarize.New(summarize.Options{BaseURL: server.URL + "/v1", Model: "small"})
	if err != nil {
		fmt.Println(err)
	}
	summary, err := client.Summarize(context.Background(), []lineage.Passage{
		{Role: "user", Text: "The nightly export fails since Tuesday."},
		{Role: "assistant", Text: "The disk of db-2 is full."},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(summary.Text)
	fmt.Println("by", summary.Model)
	// Output:
	// The export fails: the disk of db-2 is full.
	// by small
}
