package engine_test

import (
	"encoding/json"

	"github.com/lineage-store/lineage/lineage/engine"
)

// renderCase is a document with its expected rendering in every format.
type renderCase struct {
	name      string
	fragments []engine.Fragment
}

var renderCases = []renderCase{
	{"simple", []engine.Fragment{engine.Role("You are helpful"), engine.Hint("Be brief")}},
	{"nested", []engine.Fragment{
		engine.F("database",
			engine.Hint("PostgreSQL 15"),
			engine.Hint("Tables: users, orders"),
			engine.F("constraints", engine.Hint("No DELETE without audit")),
		),
	}},
	{"repeated", []engine.Fragment{
		engine.Hint("first"),
		engine.Term("MRR", "monthly recurring revenue"),
		engine.Hint("second"),
		engine.Term("NPL", "non-performing loan"),
		engine.Guardrail("Never expose PII", ""),
		engine.Guardrail("No DELETE", "audit"),
		engine.Workflow("release", "tag", "build, test", "publish"),
	}},
	{"lists", []engine.Fragment{
		engine.New("tables", []any{
			engine.Object{{"name", "users"}, {"rows", 12}, {"live", true}},
			engine.Object{{"live", false}, {"rows", 3.5}, {"name", "a, b"}},
		}),
		engine.New("uneven", []any{
			map[string]any{"b": 1, "a": []string{"x", "y"}},
			map[string]any{"c": nil},
			"text",
			[]any{1, []any{}, []any{"deep", []string{"er"}}},
			engine.Hint("named"),
			engine.F("outer", engine.Hint("a"), engine.Hint("b")),
		}),
		engine.New("tags", []string{"a", "b"}),
	}},
	{"empty", []engine.Fragment{
		engine.New("text", ""),
		engine.New("list", []any{}),
		engine.New("object", engine.Object{}),
		engine.F("fragments"),
		engine.New("null", nil),
		engine.New("fields", engine.Object{{"none", nil}, {"list", []any{nil}}, {"text", ""}, {"object", map[string]any{}}}),
		engine.User("never rendered"),
		engine.F("talk", engine.User("never rendered")),
	}},
	{"specials", []engine.Fragment{
		engine.New("markup", `<b a="1">&amp;</b> ]]> 'q' "q" \n C:\dir`),
		engine.New("lines", "one\n  two\n\n\"\"\"three\"\"\"\n```go\nfour\n```\n"),
		engine.New("controls", "nul\x00 bell\a tab\t return\r esc\x1b del\x7f"),
		engine.New("windows", "a\r\nb"),
		engine.New("unicode", "žluťoučký 漢字 🎉 \u2028 \ufffe"),
		engine.New("invalid", "a\xffb"),
		engine.New("markdown", []string{"# head", "- item", "1. one", "*bold* _it_ snake_case", "[a](b)", "---", "> quote", " edge ", "`code`"}),
		engine.New("looks", []string{"true", "null", "1", "-1", "1e5", "007", "a:b", "a,b", "", " "}),
		engine.New("first name", engine.Object{
			{"", "empty"}, {"first name", 1}, {"first_name", 2}, {"1st", 3}, {"a.b", 4}, {"имя", 5},
			{"new\nline", 6}, {`q"uote`, 7}, {" edge", 8}, {"x<y>&", 9}, {"**", 10},
		}),
	}},
	{"numbers", []engine.Fragment{
		engine.New("numbers", engine.Object{
			{"int", -7}, {"uint", uint64(18446744073709551615)}, {"float", 0.1}, {"float32", float32(0.1)},
			{"whole", 1e20}, {"large", 1e21}, {"small", 1e-7}, {"json", json.Number("1.50")},
			{"exponent", json.Number("1E400")}, {"huge", json.Number("123456789012345678901234567890")},
			{"bool", false},
		}),
	}},
}
