package render

import (
	"html/template"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
)

// maxCode is the length of code that is highlighted. Longer code is shown as it is.
const maxCode = 16 << 10

// Code returns code as HTML, highlighted if its language is known.
func Code(language, code string) template.HTML {
	lexer := lexers.Get(language)
	if lexer == nil || language == "" || len(code) > maxCode {
		return plainCode(code)
	}
	made, _ := rendered.get("code\x00"+language+"\x00"+code, func() (template.HTML, bool) {
		tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
		var out strings.Builder
		if err == nil {
			err = formatter.Format(&out, styles.Fallback, tokens)
		}
		if err != nil {
			return plainCode(code), true
		}
		return template.HTML(`<pre class="code"><code>` + out.String() + `</code></pre>`), true
	})
	return made
}

var formatter = html.New(html.WithClasses(true), html.PreventSurroundingPre(true), html.ClassPrefix("k-"))

func plainCode(code string) template.HTML {
	return template.HTML(`<pre class="code"><code>` + template.HTMLEscapeString(code) + `</code></pre>`)
}
