package sqlite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// TestProjectKilled repeatedly kills a process that projects. The next process continues, and the
// final result is correct.
func TestProjectKilled(t *testing.T) {
	const worker, turn = "LINEAGE_PROJECT_WORKER", "a transaction was committed"
	if dir := os.Getenv(worker); dir != "" {
		_, err := projectDir(dir, 20, func(project.Report) {
			fmt.Println(turn)
			_, _ = os.Stdin.Read(make([]byte, 1)) // until the next transaction may begin
		})
		require.NoError(t, err)
		return
	}
	dir := t.TempDir()
	grow := func(round int) {
		store, err := lineage.Open(context.Background(), filepath.Join(dir, "store"), lineage.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		chats := chat.On(store)
		for k := range 5 {
			id := fmt.Sprintf("chat-%d", k)
			_, err := chats.UpsertChat(context.Background(), chat.Chat{ID: id, UserID: "ada"})
			require.NoError(t, err)
			b, err := chats.ActiveBranch(context.Background(), id)
			require.NoError(t, err)
			messages := make([]chat.Message, 60)
			for i := range messages {
				text, err := json.Marshal(fmt.Sprintf("message %d of round %d", i, round))
				require.NoError(t, err)
				messages[i] = chat.Message{ID: fmt.Sprintf("m-%d-%d-%d", k, round, i), Name: "user", Data: text}
			}
			_, err = chats.Append(context.Background(), chat.AppendRequest{ChatID: id, BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: messages})
			require.NoError(t, err)
		}
		if round > 0 {
			_, err := chats.DeleteChat(context.Background(), fmt.Sprintf("chat-%d", round), chat.DeleteOptions{})
			require.NoError(t, err)
		}
	}
	killed := 0
	for round := range 4 {
		grow(round)
		for try := range 3 {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestProjectKilled$")
			cmd.Env = append(os.Environ(), worker+"="+dir)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for turns, until := 0, 1+try*2+round; turns < until && lines.Scan(); {
				if lines.Text() != turn {
					continue
				}
				if turns++; turns < until || try > 0 {
					_, _ = in.Write([]byte{0})
				}
			}
			time.Sleep(time.Duration(try) * 700 * time.Microsecond) // into the next
			require.NoError(t, cmd.Process.Kill())
			if cmd.Wait() != nil {
				killed++
			}
		}
	}
	require.Greater(t, killed, 3)
	_, err := projectDir(dir, 0, nil)
	require.NoError(t, err)

	store, err := lineage.Open(context.Background(), filepath.Join(dir, "store"), lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, "chats.db"), sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	for d, err := range project.Compare(context.Background(), db, store, project.CompareOptions{}) {
		require.NoError(t, err)
		require.Fail(t, "a difference", d)
	}
}

// projectDir projects the store in a directory into a file next to it.
func projectDir(dir string, batch int, progress func(project.Report)) (report project.Report, err error) {
	store, err := lineage.Open(context.Background(), filepath.Join(dir, "store"), lineage.Options{})
	if err != nil {
		return report, err
	}
	defer store.Close()
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, "chats.db"), sqladapter.Options{})
	if err != nil {
		return report, err
	}
	defer db.Close()
	return (&project.Projector{Store: store, DB: db, BatchRows: batch, Progress: progress}).Run(context.Background())
}
