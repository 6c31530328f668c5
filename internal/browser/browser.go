// Package browser gives tests a headless Chromium.
//
// Each test has a browser of its own, with an empty profile, that can reach nothing but this machine. It ends with the
// test. LINEAGE_TEST_CHROMIUM names the program. Where there is none, tests are skipped and say so; with CI=true they
// fail instead.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Variable is the environment variable with the program to start.
const Variable = "LINEAGE_TEST_CHROMIUM"

// patience is the time limit for a test that waits for something.
const patience = 5 * time.Minute

// Tab is a tab of a browser. It is the context that the actions of chromedp need.
type Tab struct {
	context.Context
	t testing.TB

	mu       sync.Mutex
	problems []string
	requests []string
}

// Open starts a browser and returns its first tab.
func Open(t testing.TB) *Tab {
	t.Helper()
	program := find(t)
	// Chromium may write to its profile for a moment after it has ended, so it is not a directory of the test.
	profile, err := os.MkdirTemp("", "lineage-browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for limit := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if err = os.RemoveAll(profile); err == nil {
				return
			}
			if time.Now().After(limit) {
				t.Error(err)
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.WSURLReadTimeout(patience),
		chromedp.UserDataDir(profile),
		chromedp.Env("HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile),
		chromedp.Flag("no-sandbox", os.Geteuid() == 0), // its sandbox refuses to run as root
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE [::1], EXCLUDE localhost, EXCLUDE *.localhost"),
	)...)
	t.Cleanup(cancel)
	return open(t, ctx)
}

// Tab opens another tab of the same browser, with the same cookies.
func (b *Tab) Tab() *Tab {
	b.t.Helper()
	return open(b.t, b.Context)
}

// open opens a tab, in a new browser if the context has none.
func open(t testing.TB, parent context.Context) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	b := &Tab{Context: ctx, t: t}
	t.Cleanup(func() {
		// A tab has five seconds to close. If it takes longer, it ends with its browser.
		if err := chromedp.Cancel(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close the browser: %v", err)
		}
		cancel()
	})
	if err := chromedp.Listen(ctx, b.event); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return b
}

// Do runs actions, and ends the test if one fails.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.Context, actions...); err != nil {
		b.t.Fatalf("%v\nproblems of the page: %q", err, b.Problems())
	}
}

// Get runs an action and returns its result. It ends the test if the action fails.
func Get[T any](b *Tab, action chromedp.Action[T]) T {
	b.t.Helper()
	result, err := chromedp.Run(b.Context, action)
	if err != nil {
		b.t.Fatalf("%v\nproblems of the page: %q", err, b.Problems())
	}
	return result
}

// Until waits until an expression is true, also on the page that is loaded next.
func (b *Tab) Until(expression string) {
	b.t.Helper()
	for b.Err() == nil {
		if is, err := chromedp.Run(b.Context, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && is {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatalf("it never became true: %s", expression)
}

// Fatalf ends the test, with what the page did wrong so far.
func (b *Tab) Fatalf(format string, about ...any) {
	b.t.Helper()
	b.t.Fatalf("%s\nproblems of the page: %q", fmt.Sprintf(format, about...), b.Problems())
}

// Problems returns what the page did wrong so far: exceptions, errors and warnings of the console, and what its policy
// or the network refused.
func (b *Tab) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// Requests returns the URLs that the page asked for so far.
func (b *Tab) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

func (b *Tab) event(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.problems = append(b.problems, text)
	case *runtime.EventConsoleAPICalled:
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			text := string(e.Type) + ":"
			for _, arg := range e.Args {
				text += fmt.Sprintf(" %s%s", arg.Value, arg.Description)
			}
			b.problems = append(b.problems, text)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.problems = append(b.problems, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

// find returns the program to start.
func find(t testing.TB) string {
	t.Helper()
	if named := os.Getenv(Variable); named != "" {
		return named
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "there is no Chromium: 'scripts/chromium.sh' installs it"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}
