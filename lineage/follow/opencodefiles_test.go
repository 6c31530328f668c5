package follow

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A session of OpenCode whose messages are in other files is read again when one of these is new, and a folder that is none stops nothing.
func TestOpenCodeFilesThatGrow(t *testing.T) {
	h, store := newHome(t), memory(t)
	storage := h.path(".local", "share", "opencode", "storage")
	said := func(id, text string) {
		h.write(t, storage+"/message/ses_1/"+id+".json", `{"id":"`+id+`","role":"user","time":{"created":1748779200000}}`)
		h.write(t, storage+"/part/"+id+"/prt_1.json", `{"id":"prt_1","type":"text","text":"`+text+`"}`)
	}
	session := storage + "/session/p/ses_1.json"
	h.write(t, session, `{"id":"ses_1","projectID":"p","time":{"created":1748779200000,"updated":1748779200000}}`)
	said("msg_1", "one")
	require.NoError(t, os.WriteFile(storage+"/message/ses_2", nil, 0o600))
	h.write(t, storage+"/session/p/ses_2.json", `{"id":"ses_2","projectID":"p","time":{"created":1748779200000}}`)
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(session, past, past))
	once(t, store, h.options())
	require.Len(t, texts(t, store, "ses_1"), 1)
	said("msg_2", "two")
	once(t, store, h.options())
	require.Len(t, texts(t, store, "ses_1"), 2)
	h.write(t, storage+"/part/msg_2/prt_2.json", `{"id":"prt_2","type":"text","text":"two"}`)
	later := time.Now().Add(time.Second)
	require.NoError(t, os.Chtimes(storage+"/part/msg_2", later, later))
	read := 0
	for _, e := range once(t, store, h.options()) {
		if e.Kind == Read && e.Path == session {
			read++
		}
	}
	require.Equal(t, 1, read)
}
