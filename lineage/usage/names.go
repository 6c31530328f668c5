package usage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/lineage-store/lineage/lineage/usage/prices"
)

// keyOf returns the key of an answer.
func keyOf(parts ...string) answerKey {
	b := make([]byte, 0, 192)
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(b)
	return answerKey(sum[:len(answerKey{})])
}

// maxName is the maximum length of a model's name in bytes.
const maxName = 256

// clean returns a name for reports.
func clean(name string) string {
	name = string(bytes.ToValidUTF8([]byte(name), []byte("\ufffd")))
	if len(name) > maxName {
		name = string(bytes.ToValidUTF8([]byte(name[:maxName]), nil))
	}
	return name
}

// maxStated is the largest plausible cost of an answer, in 10^-12 dollars.
const maxStated = 1_000_000_000_000_000

// stated parses a cost and returns it in 10^-12 dollars.
func stated(decimal string) (int64, bool) {
	if decimal == "" {
		return 0, false
	}
	m, err := prices.ParseMoney(decimal)
	if err != nil {
		return 0, false
	}
	n, ok := m.Pico()
	return n, ok && n <= maxStated
}

// model returns the number of a model, adding it if necessary.
func (f *writer) model(ctx context.Context, m modelName) (n int64, err error) {
	if n, known := f.models[m]; known {
		return n, nil
	}
	args := []any{m.name, m.provider, m.tier}
	if err := f.Exec(ctx, `INSERT OR IGNORE INTO models (name, provider, tier) VALUES (?, ?, ?)`, args...); err != nil {
		return 0, err
	}
	if _, err := f.Get(ctx, `SELECT number FROM models WHERE name = ? AND provider = ? AND tier = ?`, args, &n); err != nil {
		return 0, err
	}
	f.models[m] = n
	return n, nil
}
