// Package resume makes sessions of coding agents from histories, so that an agent continues from any message of a store, whatever
// program it came from.
//
//	session, err := resume.New(ctx, store, tip, resume.Options{Agent: "codex", …})
//	err = session.Write(ctx)
//	fmt.Println(session.Shell()) // cd /home/dev/work && codex resume 01a2…
//
// A history that came from the same agent is written with the agent's own lines, as the follower recorded them, up to the position
// (see follow.Source). Only what must differ is changed: the ids of the session, the header, and what gives permissions. What
// the store has beyond those lines, and a history of another program, goes through package message: what the agent has no place
// for is a Loss.
//
// Write creates one new file in the agent's folder, and changes and removes nothing. OpenCode, whose sessions are in a database, gets
// a file for its import, in a folder of this program. A session never carries a permission:
// approvals, sandboxes and modes of the stored session are left out, and the agent uses its own settings.
package resume
