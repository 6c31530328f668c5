package lock

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite golden files")

// feature: lock/file
func TestRecordGolden(t *testing.T) {
	r := holderRecord{
		PID: 4711, Timestamp: 1700000015000, Hostname: "build-7", Acquired: 1700000000000,
		Stale: 60000, Scope: "boot pid:[1] time:[2]", Started: "98765", Token: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	}
	golden := filepath.Join("testdata", "record.golden")
	data := r.encode()
	if *update {
		require.NoError(t, os.WriteFile(golden, data, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(data))
	require.Equal(t, &r, decodeRecord(want))
}

func TestDecodeRecord(t *testing.T) {
	shared := holderRecord{PID: 7, Timestamp: 1700000000000, Hostname: "h"}
	for name, tc := range map[string]struct {
		data string
		want holderRecord // zero when unreadable
	}{
		"shared keys":   {`{"pid":7,"timestamp":1700000000000,"hostname":"h"}`, shared},
		"indented":      {"{\n  \"pid\": 7,\n  \"timestamp\": 1700000000000,\n  \"hostname\": \"h\"\n}", shared},
		"unknown keys":  {`{"pid":7,"timestamp":1700000000000,"hostname":"h","session":{"a":[1]}}`, shared},
		"the epoch":     {`{"pid":7,"timestamp":0,"hostname":""}`, holderRecord{PID: 7}},
		"no pid":        {`{"timestamp":1700000000000,"hostname":"h"}`, holderRecord{}},
		"no timestamp":  {`{"pid":7,"hostname":"h"}`, holderRecord{}},
		"no hostname":   {`{"pid":7,"timestamp":1700000000000}`, holderRecord{}},
		"every process": {`{"pid":-1,"timestamp":1700000000000,"hostname":"h"}`, holderRecord{}},
		"huge pid":      {`{"pid":4294967297,"timestamp":1700000000000,"hostname":"h"}`, holderRecord{}},
		"pid as text":   {`{"pid":"7","timestamp":1700000000000,"hostname":"h"}`, holderRecord{}},
		"two records":   {`{"pid":7,"timestamp":1,"hostname":"h"}{"pid":8,"timestamp":1,"hostname":"h"}`, holderRecord{}},
		"null":          {`null`, holderRecord{}},
		"empty":         {``, holderRecord{}},
		"too long":      {`{"pid":7,"timestamp":1,"hostname":"h"}` + strings.Repeat(" ", maxRecord), holderRecord{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decodeRecord([]byte(tc.data))
			if tc.want == (holderRecord{}) {
				require.Nil(t, got)
			} else {
				require.Equal(t, &tc.want, got)
			}
		})
	}
}

func TestInfoOfSharedKeys(t *testing.T) {
	at := time.UnixMilli(1700000000000)
	got := holderRecord{PID: 7, Timestamp: at.UnixMilli(), Hostname: "h"}.info()
	require.Equal(t, &Info{PID: 7, Hostname: "h", Since: at, Refreshed: at}, got)
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := holderRecord{
			PID:       rapid.IntRange(1, math.MaxInt32).Draw(t, "pid"),
			Timestamp: rapid.Int64().Draw(t, "timestamp"),
			Hostname:  rapid.String().Draw(t, "hostname"),
			Acquired:  rapid.Int64().Draw(t, "acquired"),
			Stale:     rapid.Int64().Draw(t, "stale"),
			Scope:     rapid.String().Draw(t, "scope"),
			Started:   rapid.String().Draw(t, "started"),
			Token:     rapid.String().Draw(t, "token"),
		}
		require.Equal(t, &r, decodeRecord(r.encode()))
	})
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"pid":7,"timestamp":1700000000000,"hostname":"h"}`))
	f.Add([]byte(`{"pid":7,"timestamp":1e3,"hostname":"h","token":"t"}`))
	f.Add([]byte(`{"pid":7,"timest`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := decodeRecord(data)
		if r == nil {
			return
		}
		require.Positive(t, r.PID)
		require.Equal(t, r, decodeRecord(r.encode()))

		j := judge{stale: time.Minute, probe: func(int) process { return process{} }}
		require.True(t, j.isStale(&sighting{record: r}, time.Now(), math.MaxInt64))
	})
}
