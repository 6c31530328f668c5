// Package lists has the formats of lists of messages: those of chat endpoints, training data, runs of agents, files of branch
// managers and logs of prompts.
package lists
