package render

import (
	_ "embed"
	"html/template"
	"time"
)

// Template is the template "messages", which shows []*Message, with the templates that it uses. Programs clone it and
// add their own.
var Template = template.Must(template.New("").Funcs(template.FuncMap{
	"moment": func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
	"clock":  func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") },
}).Parse(messages))

//go:embed messages.html
var messages string

// Style is the style of messages, and the colours of a page.
//
//go:embed messages.css
var Style string
