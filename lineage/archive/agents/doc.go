// Package agents has the formats of coding agents: files of JSON lines that grow while the agent runs.
//
// What the files have in common is read by session: the id, the times, the metadata of all agents, records that are no
// messages, parents that are missing, and parts that are yielded before the end.
package agents
