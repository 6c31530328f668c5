package bench

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Shapes are the shapes of generated archives, with what n is for each.
var Shapes = map[string]string{
	"chats":     "n chats of two messages",
	"runs":      "n runs of agents of 200 messages, 90 % of the outputs of tools from 300 that all share",
	"sessions":  "n session files of a coding agent of 100 lines",
	"forks":     "20 conversations of 100 messages, each with n forks somewhere",
	"prose":     "n conversations of 12 long messages without repetition",
	"base64":    "n conversations of 10 messages of random bytes in base64",
	"languages": "n conversations of 12 messages in six scripts",
	"mixed":     "n conversations of 12 messages in ten languages and emoji, some in several",
	"essays":    "n conversations of 4 messages of 500 to 3,000 words in sentences",
	"images":    "n conversations of 8 messages, every second one with an image as a URL of base64, one in four an earlier image",
	"branches":  "5 session files of a coding agent of 100 lines, each with n forks of two lines somewhere",
	"long":      "one conversation of n messages",
}

// ErrShape is returned for an unknown shape.
var ErrShape = errors.New("unknown shape of an archive")

// Generate writes an archive of a shape into a directory. The same seed gives the same archive.
func Generate(dir, shape string, n int, seed uint64) error {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(len(shape))))} // reproducible, and no secret
	g.words = g.vocabulary(20_000, 'a', 'z')
	switch shape {
	case "sessions":
		return g.sessions(dir, n, 0)
	case "branches":
		return g.sessions(dir, 5, n)
	}
	write, ok := map[string]func(*json.Encoder, io.Writer, int) error{
		"chats": g.chats, "runs": g.runs, "forks": g.forks, "prose": g.prose, "base64": g.base64, "languages": g.languages, "long": g.long,
		"mixed": g.mixed, "essays": g.essays, "images": g.images,
	}[shape]
	if !ok {
		return fmt.Errorf("%w: %s", ErrShape, shape)
	}
	return toFile(filepath.Join(dir, shape+".jsonl"), func(w io.Writer) error { return write(json.NewEncoder(w), w, n) })
}

func toFile(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

type generator struct {
	*rand.Rand
	words []string
}

// generated is a message, and conversation a list of them, as chat completions have them.
type generated struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a text, or a list of parts
}

type conversation struct {
	ID       string      `json:"id,omitempty"`
	Title    string      `json:"title,omitempty"`
	Messages []generated `json:"messages"`
}

// vocabulary returns words of letters in a range.
func (g *generator) vocabulary(n int, from, to rune) []string {
	words := make([]string, n)
	for i := range words {
		word := make([]rune, 2+g.IntN(9))
		for j := range word {
			word[j] = from + g.Int32N(to-from+1)
		}
		words[i] = string(word)
	}
	return words
}

// text returns so many words, of which the first ones are frequent, as in languages.
func (g *generator) text(words []string, n int) string {
	all := make([]string, n)
	for i := range all {
		f := g.Float64()
		all[i] = words[int(f*f*f*float64(len(words)))]
	}
	return strings.Join(all, " ")
}

func (g *generator) between(least, most int) int { return least + g.IntN(most-least+1) }

func (g *generator) uuid() string {
	a, b := g.Uint64(), g.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(a>>32), uint16(a>>16), a&0xfff, b>>52, b&(1<<48-1))
}

// turns returns messages of the user and the assistant in turn.
func turns(n int, text func(i int) string) []generated {
	all := make([]generated, n)
	for i := range all {
		all[i] = generated{[...]string{"user", "assistant"}[i%2], text(i)}
	}
	return all
}

func (g *generator) chats(e *json.Encoder, _ io.Writer, n int) error {
	for range n {
		c := conversation{ID: g.uuid(), Title: g.text(g.words, 4), Messages: turns(2, func(i int) string { return g.text(g.words, g.between(5+15*i, 60+90*i)) })}
		if err := e.Encode(c); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) runs(e *json.Encoder, _ io.Writer, n int) error {
	shared := make([]string, 300)
	for i := range shared {
		shared[i] = g.text(g.words, g.between(50, 400))
	}
	system := generated{"system", g.text(g.words, 500)}
	for range n {
		all := turns(199, func(i int) string {
			switch {
			case i%2 == 1:
				return g.text(g.words, g.between(3, 30))
			case g.IntN(10) == 0:
				return g.text(g.words, 150)
			}
			return shared[g.IntN(len(shared))]
		})
		if err := e.Encode(conversation{Messages: append([]generated{system}, all...)}); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) forks(e *json.Encoder, _ io.Writer, n int) error {
	for range 20 {
		base := turns(100, func(int) string { return g.text(g.words, g.between(10, 60)) })
		for range n {
			cut := g.between(1, 99)
			fork := append(slices.Clone(base[:cut]), generated{base[cut].Role, g.text(g.words, 20)})
			if err := e.Encode(conversation{Messages: fork}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *generator) prose(e *json.Encoder, _ io.Writer, n int) error {
	words := g.vocabulary(200_000, 'a', 'z')
	for range n {
		text := func(int) string {
			all := make([]string, 400)
			for i := range all {
				all[i] = words[g.IntN(len(words))]
			}
			return strings.Join(all, " ")
		}
		if err := e.Encode(conversation{Messages: turns(12, text)}); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) base64(e *json.Encoder, _ io.Writer, n int) error {
	for range n {
		text := func(int) string {
			b := make([]byte, g.between(1000, 30_000))
			for i := range b {
				b[i] = byte(g.Uint32())
			}
			return base64.StdEncoding.EncodeToString(b)
		}
		if err := e.Encode(conversation{Messages: turns(10, text)}); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) languages(e *json.Encoder, _ io.Writer, n int) error {
	var all [][]string
	for _, script := range [][2]rune{{'а', 'я'}, {'一', '忀'}, {'अ', 'ह'}, {'가', '대'}, {'ء', 'ي'}, {'ぁ', 'ゖ'}} {
		all = append(all, g.vocabulary(3000, script[0], script[1]))
	}
	for range n {
		words := all[g.IntN(len(all))]
		if err := e.Encode(conversation{Messages: turns(12, func(int) string { return g.text(words, g.between(10, 100)) })}); err != nil {
			return err
		}
	}
	return nil
}

// language is how a language is written.
type language struct {
	from, to    rune
	least, most int // letters of a word
	space, stop string
	words       []string
	frequent    *rand.Zipf
}

// languageOf returns l with the given number of words.
func (g *generator) languageOf(words int, l language) *language {
	known := map[string]bool{}
	for len(l.words) < words {
		word := make([]rune, g.between(l.least, l.most))
		for i := range word {
			word[i] = l.from + g.Int32N(l.to-l.from+1)
		}
		if w := string(word); !known[w] {
			known[w] = true
			l.words = append(l.words, w)
		}
	}
	l.frequent = rand.NewZipf(g.Rand, 1.2, 4, uint64(words-1))
	return &l
}

// sentences returns sentences of so many words together.
func (g *generator) sentences(l *language, words int) string {
	var b strings.Builder
	for words > 0 {
		n := min(words, g.between(4, 25))
		words -= n
		for i := range n {
			w := l.words[l.frequent.Uint64()]
			if i == 0 && l.from < 0x500 {
				w = strings.ToUpper(w[:utf8Size(w)]) + w[utf8Size(w):]
			} else if i > 0 {
				b.WriteString(l.space)
			}
			b.WriteString(w)
		}
		if b.WriteString(l.stop); words > 0 && g.IntN(6) == 0 {
			b.WriteString("\n\n")
		} else if words > 0 {
			b.WriteString(l.space)
		}
	}
	return b.String()
}

// utf8Size is the size of the first letter.
func utf8Size(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func (g *generator) essays(e *json.Encoder, _ io.Writer, n int) error {
	l := g.languageOf(60_000, language{from: 'a', to: 'z', least: 2, most: 11, space: " ", stop: "."})
	for range n {
		if err := e.Encode(conversation{Messages: turns(4, func(int) string { return g.sentences(l, g.between(500, 3000)) })}); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) mixed(e *json.Encoder, _ io.Writer, n int) error {
	var all []*language
	for _, l := range []language{
		{from: 'а', to: 'я', least: 2, most: 10, space: " ", stop: "."},
		{from: 'α', to: 'ω', least: 2, most: 10, space: " ", stop: "."},
		{from: 'à', to: 'ö', least: 2, most: 8, space: " ", stop: "!"},
		{from: 'ء', to: 'ي', least: 2, most: 7, space: " ", stop: "۔"},
		{from: 'א', to: 'ת', least: 2, most: 7, space: " ", stop: "."},
		{from: 'अ', to: 'ह', least: 2, most: 6, space: " ", stop: "।"},
		{from: 'ก', to: 'ฮ', least: 2, most: 6, stop: " "},
		{from: '一', to: '龥', least: 1, most: 3, stop: "。"},
		{from: 'ぁ', to: 'ん', least: 1, most: 4, stop: "。"},
		{from: '가', to: '힣', least: 1, most: 4, space: " ", stop: "."},
	} {
		all = append(all, g.languageOf(4000, l))
	}
	for range n {
		one := all[g.IntN(len(all))]
		several := g.IntN(3) == 0
		text := func(int) string {
			l := one
			if several {
				l = all[g.IntN(len(all))]
			}
			s := g.sentences(l, g.between(10, 120))
			for range g.IntN(4) {
				s += " " + string('\U0001F600'+g.Int32N(80))
			}
			if g.IntN(10) == 0 { // of several characters that are shown as one
				s += "\U0001F469\U0001F3FD\u200D\U0001F4BB"
			}
			return s
		}
		if err := e.Encode(conversation{Title: g.sentences(one, 4), Messages: turns(12, text)}); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) images(e *json.Encoder, _ io.Writer, n int) error {
	var urls []string
	image := func() string {
		if len(urls) > 0 && g.IntN(4) == 0 {
			return urls[g.IntN(len(urls))]
		}
		b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
		for range g.between(2000, 50_000) {
			b = append(b, byte(g.Uint32()))
		}
		urls = append(urls, "data:image/png;base64,"+base64.StdEncoding.EncodeToString(b))
		return urls[len(urls)-1]
	}
	for range n {
		all := turns(8, func(int) string { return g.text(g.words, g.between(5, 150)) })
		for i := range all {
			if i%2 == 0 {
				all[i].Content = []any{
					map[string]any{"type": "text", "text": all[i].Content},
					map[string]any{"type": "image_url", "image_url": map[string]any{"url": image()}},
				}
			}
		}
		if err := e.Encode(conversation{Messages: all}); err != nil {
			return err
		}
	}
	return nil
}

// long does not keep the conversation in memory.
func (g *generator) long(_ *json.Encoder, w io.Writer, n int) error {
	_, err := io.WriteString(w, `{"messages":[`)
	for i := range n {
		if err != nil {
			return err
		}
		b, _ := json.Marshal(generated{[...]string{"user", "assistant"}[i%2], g.text(g.words, g.between(3, 12))}) // strings
		if i > 0 {
			b = append([]byte(","), b...)
		}
		_, err = w.Write(b)
	}
	if err == nil {
		_, err = io.WriteString(w, "]}\n")
	}
	return err
}

// sessions writes session files as Claude Code does, with so many forks each.
func (g *generator) sessions(dir string, n, forks int) error {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for i := range n {
		session, project := g.uuid(), fmt.Sprintf("p%d", i%20)
		err := toFile(filepath.Join(dir, "-home-user-"+project, session+".jsonl"), func(w io.Writer) error {
			e := json.NewEncoder(w)
			var ids []any
			for j := range 100 + 2*forks {
				var parent any
				switch {
				case j >= 100 && j%2 == 0: // a fork, after an answer
					parent = ids[2*g.IntN(50)+1]
				case j > 0:
					parent = ids[j-1]
				}
				at = at.Add(time.Duration(g.between(1000, 30_000)) * time.Millisecond)
				id := g.uuid()
				line := map[string]any{
					"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/home/user/" + project, "sessionId": session,
					"version": "1.0.60", "gitBranch": "main", "uuid": id, "timestamp": at.Format("2006-01-02T15:04:05.000Z"),
					"type": "user", "message": map[string]any{"role": "user", "content": g.text(g.words, g.between(5, 80))},
				}
				if j%2 == 1 {
					line["type"], line["requestId"] = "assistant", "req_"+g.uuid()[:20]
					line["message"] = map[string]any{
						"id": "msg_" + g.uuid()[:23], "type": "message", "role": "assistant", "model": "claude-opus-4",
						"content":     []any{map[string]any{"type": "text", "text": g.text(g.words, g.between(10, 100))}},
						"stop_reason": nil, "stop_sequence": nil,
						"usage": map[string]any{"input_tokens": g.between(5, 9999), "output_tokens": g.between(5, 2000)},
					}
				}
				if err := e.Encode(line); err != nil {
					return err
				}
				ids = append(ids, id)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
