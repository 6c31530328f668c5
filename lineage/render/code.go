package render

import (
	"context"
	"html/template"
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
)

// maxCode is the maximum length of code that is highlighted. Longer code is shown without highlighting.
const maxCode = 16 << 10

// codeTime limits the time for highlighting a piece of code. Code that takes longer is shown without highlighting. Tests
// change it.
var codeTime = time.Second

// languages are the languages that are highlighted, by their names in lower case. Looking up any name that a text
// contains would be slow, and some languages embed code of any other.
var languages = func() map[string]bool {
	all := make(map[string]bool)
	for name := range strings.FieldsSeq(`awk bash sh shell zsh console c h cpp c++ cc hpp csharp c# cs clojure cmake css scss dart diff patch docker dockerfile
		elixir elm erlang fish fsharp go golang graphql groovy haskell hcl terraform html http ini cfg toml java javascript js jsx mjs json json5 julia kotlin
		latex tex lua make makefile matlab nginx nix objective-c ocaml perl php powershell ps1 properties proto protobuf python py
		python3 r ruby rb rust rs scala scheme sql mysql postgres postgresql svelte swift tcl typescript ts tsx vim vue xml yaml yml zig`) {
		all[name] = true
	}
	return all
}()

// texts renders the texts of a page.
type texts struct {
	ctx context.Context
	// left is the time that remains for highlighting code.
	left time.Duration
}

// code returns code as HTML, highlighted if its language is known. all is false if there was no time to highlight it,
// so that a later call may give another result.
func (r *texts) code(language, code string) (made template.HTML, all bool) {
	language = strings.ToLower(language)
	if !languages[language] || len(code) > maxCode {
		return plainCode(code), true
	}
	key := "code\x00" + language + "\x00" + code
	if made, _, known := rendered.get(key); known {
		return made, true
	}
	if r.left <= 0 || r.ctx.Err() != nil {
		return plainCode(code), false
	}
	began := time.Now()
	ctx, cancel := context.WithDeadline(r.ctx, began.Add(min(codeTime, r.left)))
	defer cancel()
	made, whole := highlighted(ctx, language, code)
	elapsed := time.Since(began)
	r.left -= elapsed
	if !whole && elapsed < codeTime { // the time of the request ended, and not that of a code
		return made, false
	}
	rendered.put(key, made, true)
	return made, true
}

// highlighted returns highlighted code, or plain code if the context ends first.
func highlighted(ctx context.Context, language, code string) (made template.HTML, whole bool) {
	defer func() {
		if recover() != nil { // the library reports errors in a language by panics
			made, whole = plainCode(code), true
		}
	}()
	tokens, err := lexers.Get(language).Tokenise(nil, code)
	if err != nil {
		return plainCode(code), true
	}
	var all []chroma.Token
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if ctx.Err() != nil {
			return plainCode(code), false
		}
		if n := len(all); n > 0 && all[n-1].Type == token.Type {
			all[n-1].Value += token.Value
			continue
		}
		all = append(all, token)
	}
	var out strings.Builder
	if err := formatter.Format(&out, classesOnly, chroma.Literator(all...)); err != nil {
		return plainCode(code), true
	}
	return template.HTML(`<pre class="code"><code>` + out.String() + `</code></pre>`), true
}

var formatter = html.New(html.WithClasses(true), html.PreventSurroundingPre(true), html.ClassPrefix("k-"))

// classesOnly has no colours: the page's style sheet gives them to the classes. Importing the library's styles would read
// all of them whenever the program starts.
var classesOnly = chroma.MustNewStyle("", chroma.StyleEntries{})

func plainCode(code string) template.HTML {
	return template.HTML(`<pre class="code"><code>` + template.HTMLEscapeString(code) + `</code></pre>`)
}
