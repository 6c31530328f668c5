package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// ofOwner identifies the owner of values: a context, a thread, a user or an application. If it is empty, the owner is
// the store.
type ofOwner struct {
	of
	User        string `json:"user,omitempty" path:"user" doc:"the user"`
	Application string `json:"application,omitempty" path:"application" doc:"the application"`
}

// ownApplications is the prefix of the applications whose values belong to the program itself.
const ownApplications = "lineage/"

// owner returns the owner of values, if the caller may access them.
func (w *within) owner(ctx context.Context, o *ofOwner) (owner lineage.Owner, at *lineage.Context, err error) {
	scope := &w.caller.Scope
	switch {
	case o.Context != "":
		found, err := w.context(ctx, o.of)
		if err != nil {
			return owner, nil, err
		}
		return lineage.Owner{Scope: lineage.ContextScope, Context: found.Context.ID()}, found.Context, nil
	case o.Thread != "":
		t, err := w.thread(ctx, o.Thread)
		if err != nil {
			return owner, nil, err
		}
		return lineage.Owner{Scope: lineage.ThreadScope, Thread: t.ID()}, nil, nil
	case o.User != "" && o.Application == "":
		// The values of a user concern all projects of the user.
		if !scope.All() && !(slices.Contains(scope.Users, o.User) && len(scope.Projects) == 0) {
			return owner, nil, notFound("user", o.User)
		}
		return lineage.Owner{Scope: lineage.UserScope, Name: o.User}, nil, nil
	case !scope.All():
		return owner, nil, errWhole
	case o.Application != "" && o.User == "":
		if strings.HasPrefix(o.Application, ownApplications) {
			return owner, nil, fmt.Errorf("application %.100q: %w: its values are those of the server", o.Application, lineage.ErrProtected)
		}
		return lineage.Owner{Scope: lineage.ApplicationScope, Name: o.Application}, nil, nil
	case o.Application == "":
		return lineage.Owner{Scope: lineage.StoreScope}, nil, nil
	}
	return owner, nil, fmt.Errorf("owner: %w: a user and an application", lineage.ErrInvalid)
}

type valuesQuery struct {
	ofOwner
	Prefix string `json:"-" query:"prefix" doc:"only keys with this prefix"`
	listPage
}

func (a *API) listValues(ctx context.Context, c *call, in *valuesQuery) (*list[*records.Value], error) {
	owner, _, err := c.owner(ctx, &in.ofOwner)
	if err != nil {
		return nil, err
	}
	out, bytes := &list[*records.Value]{}, 0
	for v, err := range a.o.Store.Values(owner).AllAfter(ctx, in.Prefix, in.After) {
		if err != nil {
			return nil, err
		}
		if len(out.Items) == in.size() || len(out.Items) > 0 && bytes+len(v.JSON) > maxTexts {
			out.Next = out.Items[len(out.Items)-1].Key
			break
		}
		bytes += len(v.JSON)
		out.Items = append(out.Items, records.OfValue(&v))
	}
	return out, nil
}

type ofValue struct {
	ofOwner
	Key string `json:"key" path:"key" doc:"the key"`
}

type valueQuery struct {
	ofValue
	At string `json:"-" query:"at" doc:"of a context: as of this position of its history"`
}

func (a *API) getValue(ctx context.Context, c *call, in *valueQuery) (*records.Value, error) {
	owner, owning, err := c.owner(ctx, &in.ofOwner)
	if err != nil {
		return nil, err
	}
	values := a.o.Store.Values(owner)
	if in.At != "" {
		if owning == nil {
			return nil, fmt.Errorf("at: %w: only with a context", lineage.ErrInvalid)
		}
		found, err := c.context(ctx, in.of)
		if err != nil {
			return nil, err
		}
		at, err := c.position(ctx, found, in.At)
		if err != nil {
			return nil, err
		}
		values = values.At(at.Span)
	}
	v, err := values.Get(ctx, in.Key)
	if err != nil {
		return nil, err
	}
	return records.OfValue(&v), nil
}

type valueHistoryQuery struct {
	ofValue
	listPage
}

// valueHistory lists the values that an owner itself has set under a key.
func (a *API) valueHistory(ctx context.Context, c *call, in *valueHistoryQuery) (*list[*records.Value], error) {
	owner, _, err := c.owner(ctx, &in.ofOwner)
	if err != nil {
		return nil, err
	}
	before := uint64(0)
	if in.After != "" {
		if before, err = strconv.ParseUint(in.After, 10, 64); err != nil || before == 0 {
			return nil, fmt.Errorf("after: %w: must be the next value of a page", lineage.ErrInvalid)
		}
	}
	out, bytes, last := &list[*records.Value]{}, 0, uint64(0)
	for v, err := range a.o.Store.Values(owner).History(ctx, in.Key, before) {
		if err != nil {
			return nil, err
		}
		if bytes += len(v.JSON); len(out.Items) == in.size() || len(out.Items) > 0 && bytes > maxTexts {
			out.Next = strconv.FormatUint(last, 10)
			break
		}
		last = v.Commit
		out.Items = append(out.Items, records.OfValue(&v))
	}
	return out, nil
}

// valueRecord returns the record of a value that was set.
func (w *within) valueRecord(ctx context.Context, v *valueOf) (records.Record, error) {
	o := &ofOwner{of: of{Thread: v.Thread, Context: v.Context}}
	switch v.Scope {
	case lineage.UserScope:
		o.User = v.Name
	case lineage.ApplicationScope:
		o.Application = v.Name
	}
	owner, _, err := w.owner(ctx, o)
	if err != nil {
		return nil, err
	}
	value, err := w.store.Values(owner).Get(ctx, v.Key)
	if err != nil {
		return nil, err
	}
	return records.OfValue(&value), nil
}

type setValue struct {
	ofValue
	Value json.RawMessage `json:"value" body:"whole" doc:"any JSON"`
}

func (o *setValue) do(ctx context.Context, w *within) (made, error) {
	owner, _, err := w.owner(ctx, &o.ofOwner)
	if err != nil {
		return made{}, err
	}
	if err := w.store.Values(owner).Set(ctx, o.Key, o.Value); err != nil {
		return made{}, err
	}
	return made{Value: &valueOf{Scope: owner.Scope, Name: owner.Name, Thread: records.ID(owner.Thread), Context: records.ID(owner.Context), Key: o.Key}}, nil
}

type deleteValue struct{ ofValue }

func (o *deleteValue) do(ctx context.Context, w *within) (made, error) {
	owner, _, err := w.owner(ctx, &o.ofOwner)
	if err != nil {
		return made{}, err
	}
	return made{}, w.store.Values(owner).Delete(ctx, o.Key)
}

// sameJSON reports whether two values are equal as programs read them: numbers are of 64 bits with a floating point,
// because many programs have no others. An empty value is null.
func sameJSON(a, b json.RawMessage) bool {
	values := make([]any, 2)
	for i, raw := range []json.RawMessage{a, b} {
		if len(raw) > 0 && json.Unmarshal(raw, &values[i]) != nil {
			return bytes.Equal(a, b)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
