package importer

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

var (
	// ErrDeleted is returned by Growing.Read when the thread of the input was deleted from the store. It matches
	// lineage.ErrConflict.
	ErrDeleted = fmt.Errorf("the thread was deleted: %w", lineage.ErrConflict)
	// ErrStale is returned by Growing.Read when the store no longer has messages that Known gave, or when lines that were
	// given without messages have some: read the input from its start, without Known.
	ErrStale = errors.New("the store does not have the messages of the first lines")
)

// StoreError is an error of the store, and not of what is imported. It has the text of Err.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return e.Err.Error() }

func (e *StoreError) Unwrap() error { return e.Err }

// errNamesake is the error for a conversation whose source id a thread of another user has.
var errNamesake = fmt.Errorf("a thread with this id %w: a prefix keeps them apart", lineage.ErrOtherUser)
