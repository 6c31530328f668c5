package engine_test

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/engine"
)

func ExampleXMLRenderer() {
	prompt, err := engine.XMLRenderer{}.Render(
		engine.Role("You are helpful"),
		engine.Hint("Be brief"),
		engine.User("never part of the prompt"),
	)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(prompt)
	// Output:
	// <role>You are helpful</role>
	// <hint>Be brief</hint>
}

func ExampleF() {
	database := engine.F("database",
		engine.Hint("PostgreSQL 15"),
		engine.F("constraints", engine.Hint("No DELETE without audit")),
	)
	prompt, err := engine.MarkdownRenderer{}.Render(database)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(prompt)
	// Output:
	// ## database
	//
	// - **hint**: PostgreSQL 15
	// - **constraints**:
	//   - **hint**: No DELETE without audit
}

func ExampleTOONRenderer() {
	prompt, err := engine.TOONRenderer{}.Render(
		engine.Term("MRR", "monthly recurring revenue"),
		engine.Term("NPL", "non-performing loan"),
	)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(prompt)
	// Output:
	// term[2]{name,definition}:
	//   MRR,monthly recurring revenue
	//   NPL,non-performing loan
}

func ExampleUIMessage_Encode() {
	m, err := engine.DecodeMessage([]byte(`{ "id":"q1", "role":"user", "parts":[{"type":"text","text":"Hi"}], "mine":1.0 }`))
	if err != nil {
		fmt.Println(err)
	}
	m.Parts[0].Text = "Hello"
	row, err := m.Encode()
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(row))
	// Output: { "id":"q1", "role":"user", "parts":[{"type":"text","text":"Hello"}], "mine":1.0 }
}
