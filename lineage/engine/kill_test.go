package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// talkVariable names the store that a child process writes to until it is killed.
const talkVariable = "ENGINE_TEST_TALK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(talkVariable); dir != "" {
		fmt.Println("failed", talkForEver(dir, os.Stdout))
		os.Exit(1)
	}
	campaign.Checks(15)
	goleak.VerifyTestMain(m)
}

// talkForEver saves turns, and sometimes a new version of the last message. It prints the texts of
// the branch after each acknowledged save.
func talkForEver(dir string, said io.Writer) error {
	ctx := context.Background()
	store, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, chat.On(store), engine.Options{ChatID: "c", UserID: "ada"})
	if err != nil {
		return err
	}
	now, err := e.Resolve(ctx, engine.ResolveOptions{})
	if err != nil {
		return err
	}
	turn := len(now.Messages)
	for ; ; turn++ {
		question, answer := engine.User(fmt.Sprint("q", turn)), engine.AssistantText(fmt.Sprint("a", turn), "")
		err := e.Set(question, answer)
		if err == nil && turn%7 == 6 {
			if _, err = e.Save(ctx); err == nil {
				anew := engine.Message(engine.UIMessage{ID: question.ID, Role: "user", Parts: []engine.Part{engine.TextPart(fmt.Sprint("Q", turn))}})
				err = e.Set(anew, engine.AssistantText(fmt.Sprint("A", turn), ""))
			}
		}
		if err == nil {
			_, err = e.Save(ctx)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(said, e.Branch(), turn)
	}
}

// After a process is killed, every acknowledged turn is stored and none is stored in part.
func TestKill(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for round := range 8 {
		victim := exec.Command(os.Args[0])
		victim.Env = append(os.Environ(), talkVariable+"="+dir)
		out, err := victim.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, victim.Start())
		var branch, turn string
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var ok bool
			branch, turn, ok = strings.Cut(lines.Text(), " ")
			require.True(t, ok)
			require.NotEqual(t, "failed", branch, turn)
			if n == 10+7*round {
				require.NoError(t, victim.Process.Kill())
			}
		}
		require.Error(t, victim.Wait(), "it was killed")

		store, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		chats := chat.On(store)
		e, err := engine.Open(ctx, chats, engine.Options{ChatID: "c", UserID: "ada"})
		require.NoError(t, err)
		now, err := e.Resolve(ctx, engine.ResolveOptions{})
		require.NoError(t, err)
		var texts []string
		for _, m := range now.Messages {
			texts = append(texts, strings.ToLower(m.Text()))
		}
		require.True(t, slices.Contains(texts, "a"+turn), "turn %s on %s was acknowledged", turn, branch)
		require.Zero(t, len(texts)%2)
		for i := 0; i < len(texts); i += 2 {
			require.Equal(t, "a"+texts[i][1:], texts[i+1], "a turn stays whole")
		}
		// Every message is on a branch: an interrupted save leaves nothing.
		on := map[string]bool{}
		branches, err := e.Branches(ctx)
		require.NoError(t, err)
		for _, b := range branches {
			for m, err := range chats.MessageChain(ctx, "c", string(b.HeadMessageID)) {
				require.NoError(t, err)
				on[m.ID] = true
			}
		}
		g, err := e.Graph(ctx)
		require.NoError(t, err)
		require.Len(t, on, len(g.Nodes))
		require.NoError(t, store.Close())
	}
}
