// Package resume creates sessions of coding agents from histories, so that an agent can continue from any message of a
// store, whatever program the message came from.
//
//	session, err := resume.New(ctx, store, tip, resume.Options{Agent: "codex", …})
//	err = session.Write(ctx)
//	fmt.Println(session.Shell()) // cd /home/dev/work && codex resume 01a2…
//
// If the history came from the same agent, its start is written with the agent's own lines, as the follower recorded
// them (see follow.Source). Only what must differ is changed: the ids of the session, the header, and members that give
// permissions. Later messages, and a history of another program, are translated by package message. What the agent
// cannot express is a Loss.
//
// Write creates one new file in the agent's folder. It changes and removes nothing. OpenCode keeps sessions in a
// database, so it gets a file for its import, in a folder of this program. A session never carries a permission:
// approvals, sandboxes and modes of the stored session are left out, and the agent uses its own settings.
package resume
