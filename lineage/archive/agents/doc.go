// Package agents has the formats of coding agents: files of JSON lines that grow while the agent runs.
//
// The type sessionReader reads what these files have in common: the id, the times, the metadata of all agents, records that
// are not messages, missing parents, and parts that are yielded before the end.
package agents
