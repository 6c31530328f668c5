package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/lineage-store/lineage/lineage/lock"
)

func ExampleWith() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	session := filepath.Join(dir, "main.json")

	err = lock.With(context.Background(), session, lock.Options{}, func(ctx context.Context) error {
		// The file is locked as long as ctx is not cancelled.
		return os.WriteFile(session, []byte(`{"id":"main"}`), 0o600)
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleHeldError() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	session := filepath.Join(dir, "main.json")

	mine := lock.New(session, lock.Options{})
	if err := mine.Acquire(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer mine.Release()

	opts := lock.Options{Wait: 10 * time.Millisecond}
	err = lock.With(context.Background(), session, opts, func(context.Context) error { return nil })
	var held *lock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by this process:", held.Holder.PID == os.Getpid())
	}
	// Output: held by this process: true
}

func ExampleLock() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	l := lock.New(filepath.Join(dir, "main.json"), lock.Options{})
	acquired, err := l.TryAcquire()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("acquired:", acquired)

	if err := l.Release(); err != nil {
		log.Fatal(err)
	}
	locked, err := l.IsLocked()
	fmt.Println("locked:", locked, err)
	// Output:
	// acquired: true
	// locked: false <nil>
}
