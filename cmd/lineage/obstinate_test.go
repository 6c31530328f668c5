package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

// obstinate is a program that never looks whether it was interrupted. Its arguments are
// what it does, "loop" or the file that it waits to open, and the time of grace. It writes
// a line when it starts, and one when it is interrupted.
func obstinate() {
	grace, err := time.ParseDuration(os.Args[2])
	if err != nil {
		panic(err)
	}
	ctx := app.EndOnSignals(context.Background(), grace)
	context.AfterFunc(ctx, func() { fmt.Print("2") })
	fmt.Print("1")
	if os.Args[1] == "loop" {
		for i := 0; ; i++ {
		}
	}
	if _, err := os.Open(os.Args[1]); err != nil {
		panic(err)
	}
}
