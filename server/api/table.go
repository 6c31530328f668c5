package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/lineage-store/lineage/lineage/records"
)

// get returns a route that answers with a record or a list.
func get[In, Out any](path, doc string, f func(ctx context.Context, c *call, in *In) (Out, error)) route {
	return route{
		pattern: "GET " + path, doc: doc, in: reflect.TypeFor[In](), answer: answerOf[Out](http.StatusOK),
		serve: func(_ *API, c *call) error {
			in := new(In)
			if err := c.bind(in); err != nil {
				return err
			}
			out, err := f(c.r.Context(), c, in)
			if err != nil {
				return err
			}
			return c.send(http.StatusOK, out)
		},
	}
}

// raw returns a route whose handler writes the answer itself.
func raw[In any](pattern, doc, media string, f func(ctx context.Context, c *call, in *In) error) route {
	return route{
		pattern: pattern, doc: doc, in: reflect.TypeFor[In](), answer: answers{status: http.StatusOK, media: media},
		serve: func(_ *API, c *call) error {
			in := new(In)
			if err := c.bind(in); err != nil {
				return err
			}
			return f(c.r.Context(), c, in)
		},
	}
}

// change returns a route of an operation. The answer is what the operation made, or status 204 if it makes nothing.
func change[Op any, Out any, P interface {
	*Op
	operation
}](pattern, op, doc string) route {
	status := http.StatusOK
	if strings.HasPrefix(pattern, "POST ") {
		status = http.StatusCreated
	}
	r := route{pattern: pattern, doc: doc, op: op, in: reflect.TypeFor[Op](), needs: needs{writes: true}, answer: answerOf[Out](status)}
	r.serve = func(a *API, c *call) error {
		o := P(new(Op))
		if err := c.bind(o); err != nil {
			return err
		}
		done, err := a.commit(c, []operation{o})
		if err != nil {
			return err
		}
		return c.sendMade(c.route.answer.status, &done[0])
	}
	return r
}

// nothing is the answer of an operation that leaves nothing.
type nothing struct{}

func answerOf[Out any](status int) answers {
	t := reflect.TypeFor[Out]()
	switch {
	case t == reflect.TypeFor[nothing]():
		return answers{status: http.StatusNoContent}
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Implements(reflect.TypeFor[lister]()):
		return answers{status: status, record: reflect.Zero(t).Interface().(lister).element(), list: true}
	}
	return answers{status: status, record: t}
}

// of returns a changed copy of the route.
func (r route) of(change func(*route)) route {
	change(&r)
	return r
}

func writes(r *route) { r.needs.writes = true }
func answersWith[Out any](status int) func(*route) {
	return func(r *route) { r.answer = answerOf[Out](status) }
}
func ok(r *route)          { r.answer.status = http.StatusOK }
func mayBeBehind(r *route) { r.answer.behind = true }
func whole(r *route)       { r.needs.whole = true }
func streams(r *route) {
	r.streams, r.answer = true, answers{status: http.StatusOK, media: "text/event-stream"}
}
func upload(r *route) { r.upload = true }

// eventsQuery is the input of the server's events.
type eventsQuery struct {
	From    uint64   `json:"-" query:"from" doc:"the number of the first commit; default the next one"`
	Threads []string `json:"-" query:"thread" doc:"only of these threads, by their ids"`
	LastID  string   `json:"-" header:"Last-Event-ID" doc:"the id of the last event, in place of from"`
}

// table returns all routes.
func (a *API) table() []route {
	const (
		thread  = "/v1/threads/{thread}"
		context = thread + "/contexts/{context}"
		outside = "/v1/contexts/{context}"
	)
	all := []route{
		raw("GET /v1/openapi.json", "This document.", "application/json", a.openAPIDocument),

		get("/v1/threads", "List threads, the one that was updated last first.", a.listThreads),
		change[createThread, *records.Thread]("POST /v1/threads", "create_thread", "Create a thread, or with reuse get the one with the id."),
		get(thread, "A thread.", a.getThread),
		change[updateThread, *records.Thread]("PATCH "+thread, "update_thread", "Change a thread. What is absent stays."),
		change[deleteThread, nothing]("DELETE "+thread, "delete_thread", "Delete a thread with all that is in it."),
		change[copyThread, *records.Thread]("POST "+thread+"/copy", "copy_thread", "Create a thread whose branches have the histories, settings and values of those of another."),

		get(thread+"/branches", "List the branches of a thread.", a.listBranches),
		change[createBranch, *records.Branch]("POST "+thread+"/branches", "create_branch", "Create a branch, or with reuse get the one with the name."),
		change[updateBranch, *records.Branch]("PATCH "+thread+"/branches/{branch}", "update_branch", "Rename a branch, or make it the active one."),
		change[deleteBranch, nothing]("DELETE "+thread+"/branches/{branch}", "delete_branch", "Delete a branch."),
		get(thread+"/checkpoints", "List the checkpoints of a thread.", a.listCheckpoints),
		change[setCheckpoint, *records.Checkpoint]("POST "+thread+"/checkpoints", "set_checkpoint", "Set a checkpoint."),
		change[deleteCheckpoint, nothing]("DELETE "+thread+"/checkpoints/{checkpoint}", "delete_checkpoint", "Delete a checkpoint."),
		get(thread+"/contexts", "List the contexts of a thread: its branches, forks, subagents and alternatives.", a.listContexts),
		change[fork, *records.Context]("POST "+thread+"/contexts", "fork", "Create a context that continues from a position."),
		change[createContext, *records.Context]("POST /v1/contexts", "create_context", "Create a context outside threads.").of(whole),
		get(thread+"/graph", "The histories of a thread as lines that fork off one another.", a.graph),
		get("/v1/chats", "List threads as chats, the one that was updated last first.", a.listChats),
		get(thread+"/chat/messages", "A message of a chat, or a message and those before it, the last first.", a.chatMessages),
		change[addChatMessage, nothing]("POST "+thread+"/chat/messages", "add_chat_message", "Add a message after any other, or as the first of a history. No branch moves. A message that is there is left as it is, and refused if it is another."),
		get(thread+"/chat/branches", "List the branches of a chat, oldest first.", a.chatBranches),
		change[createChatBranch, nothing]("POST "+thread+"/chat/branches", "create_chat_branch", "Create a branch of a chat."),
		change[updateChatBranch, nothing]("PATCH "+thread+"/chat/branches/{id}", "update_chat_branch", "Move a branch of a chat to a message, or make it the active one."),
		get(thread+"/chat/checkpoints", "List the checkpoints of a chat, newest first.", a.chatCheckpoints),
		change[setChatCheckpoint, nothing]("POST "+thread+"/chat/checkpoints", "set_chat_checkpoint", "Set a checkpoint of a chat."),
		get(thread+"/chat/graph", "All messages of a chat, and its branches and checkpoints.", a.chatGraph),
		raw("GET "+thread+"/export", "A thread in a format for other programs or for people.", "application/octet-stream", a.export),
		raw("GET "+thread+"/native", "The session file of an agent, as it was.", "application/octet-stream", a.native),

		{pattern: "GET /v1/events", doc: "Commits as they happen.", in: reflect.TypeFor[eventsQuery](), answer: answers{status: http.StatusOK, media: "text/event-stream"}, streams: true},
		{pattern: "GET /v1/content/{content}", doc: "The bytes of a content, with ranges.", in: reflect.TypeFor[ofContent](), answer: answers{status: http.StatusOK, media: "application/octet-stream"}},
		raw("POST /v1/content", "Store bytes, which a message can name by their id within a day.", "", a.putContent).of(writes).of(whole).of(upload).of(answersWith[*records.Content](http.StatusCreated)),
		raw("DELETE /v1/content/{content}", "Erase a content from every history. A collection removes its bytes.", "", a.eraseContent).of(writes).of(whole).of(answersWith[*list[*records.Erased]](http.StatusOK)),
		get("/v1/content/{content}/provenance", "List a content and what it was derived from.", a.provenance),
		get("/v1/content/{content}/uses", "List the messages that have a content.", a.contentUses),
		raw("GET /v1/bundle", "Threads, or the whole store, as a bundle for another store. Nothing is lost.", "application/octet-stream", a.bundle).of(whole),
		raw("GET /v1/bundle/inventory", "A list of what the store has. A bundle made against it leaves that out.", "application/octet-stream", a.inventory).of(whole),
		raw("POST /v1/bundle/against", "As GET /v1/bundle, but without what another store has: the body is the inventory of that store.", "application/octet-stream", a.bundleAgainst).of(whole).of(upload),
		raw("POST /v1/bundle", "Import a bundle: the body is the bundle. Every byte is checked before anything is added.", "", a.importBundle).of(writes).of(whole).of(upload).of(answersWith[*records.Unbundled](http.StatusOK)),
		get("/v1/stats", "How much is stored.", a.stats).of(whole),
		raw("DELETE /v1/users/{user}", "Delete everything of a user, in several commits.", "application/json", a.deleteUser).of(writes),
		raw("POST /v1/batch", "Several changes in one commit: all or none.", "application/json", a.batch).of(writes),
	}
	if a.o.Search != nil {
		all = append(all, get("/v1/search", "Search the texts of messages.", a.search).of(mayBeBehind))
	}
	if a.o.SearchChat != nil {
		all = append(all, get(thread+"/chat/search", "Search the messages of a chat, the best first.", a.searchChat))
	}
	if a.o.Usage != nil {
		all = append(all, get("/v1/usage", "What answers of models cost: rows, and the total last.", a.usage))
	}
	if a.o.Import != nil {
		all = append(all, raw("POST /v1/import", "Import an archive: the body is the archive.", "", a.importArchive).of(writes).of(whole).of(upload).of(answersWith[*records.Imported](http.StatusOK)))
	}
	if a.o.Resume != nil {
		all = append(all, raw("POST "+thread+"/resume", "Make a session of an agent on the machine of the server.", "", a.resume).of(writes).of(whole).of(answersWith[*records.Resumed](http.StatusOK)))
	}
	for _, c := range []string{context, outside} {
		all = append(all,
			get(c, "A context.", a.getContext),
			change[updateContext, *records.Context]("PATCH "+c, "update_context", "Change the settings of a context. What is absent stays."),
			change[deleteContext, nothing]("DELETE "+c, "delete_context", "Delete a context without a name."),
			raw("GET "+c+"/messages", "The messages of a history, oldest first; with dialect, the request to send to a model.", "application/json", a.messages).of(func(r *route) {
				r.answer = answerOf[*list[*records.Message]](http.StatusOK)
				r.answer.or = true
			}),
			change[appendMessages, *records.Appended]("POST "+c+"/messages", "append", "Append messages."),
			change[move, *records.Moved]("POST "+c+"/move", "move", "Move a context to another message.").of(ok),
			change[undo, *records.Moved]("POST "+c+"/undo", "undo", "Undo the last move of a context.").of(ok),
			get(c+"/moves", "List the moves of a context, last first.", a.listMoves),
			get(c+"/diff", "List the messages that only one of two histories has, and their number.", a.diff),
			get(c+"/documents", "List the revisions of documents.", a.listDocuments),
			get(c+"/documents/{document}", "A revision of a document.", a.getDocument),
			get(c+"/documents/{document}/diff", "Compare two revisions of a document line by line.", a.diffDocument),
			raw("POST "+c+"/erase", "Erase a message from every history. Its other contents that other messages have, too, stay, and are listed with stays. A collection removes its bytes.", "", a.eraseMessage).of(writes).of(whole).of(answersWith[*list[*records.Erased]](http.StatusOK)),
			get(c+"/resolved", "The parts of what to send to a model, and the sum of them.", a.resolved),
			raw("POST "+c+"/files", "Append a file, a document or a message: the body is its bytes, and Content-Type its media type.", "", a.files).of(writes).of(upload).of(answersWith[*records.Appended](http.StatusCreated)),
			raw("GET "+c+"/follow", "The messages of a history as they are added.", "", a.follow).of(streams),
			change[merge, *records.Merged]("POST "+c+"/merge", "merge", "Append the messages of another context of the thread.").of(ok),
			change[edit, *records.Context]("POST "+c+"/edits", "edit", "Fork a history with one message changed."),
			change[returnResult, *records.Sent]("POST "+c+"/return", "return", "Append the result of a subagent to its parent."),
			change[send, *records.Sent]("POST "+c+"/send", "send", "Send a message to another context."),
			get(c+"/alternatives", "List alternatives.", a.listAlternatives),
			change[alternatives, *list[*records.Alternative]]("POST "+c+"/alternatives", "alternatives", "Offer alternatives: contexts that continue from the same message."),
			change[choose, *records.Moved]("POST "+c+"/choose", "choose", "Continue with an alternative.").of(ok),
			get(c+"/summaries", "List summaries.", a.listSummaries),
			change[summarizeRange, *records.Summary]("POST "+c+"/summaries", "summarize", "Create a summary."),
			change[deleteSummary, nothing]("DELETE "+c+"/summaries/{summary}", "delete_summary", "Delete a summary."),
		)
	}
	for _, v := range []string{context, outside, thread, "/v1/users/{user}", "/v1/applications/{application}", "/v1/store"} {
		all = append(all,
			get(v+"/values", "List values, in the order of their keys.", a.listValues),
			get(v+"/values/{key}", "A value.", a.getValue),
			get(v+"/values/{key}/history", "List what was set under a key, the latest first, while it is kept.", a.valueHistory),
			change[setValue, *records.Value]("PUT "+v+"/values/{key}", "set_value", "Set a value: the body is any JSON."),
			change[deleteValue, nothing]("DELETE "+v+"/values/{key}", "delete_value", "Delete a value. In a context it also hides what that would inherit."),
		)
	}
	return all
}
