// Package follow brings the session files of the agents on this machine into a store, and keeps the
// store up to date while the files grow.
//
//	files ──▶ scan, watch ──▶ archive.Growing: the reader of the format ──▶ messages in threads
//	                │                      └──▶ Source: the lines of the file, byte for byte
//	                └──▶ State: how much of the file was read, for the next start
//
// Run reads what is new, and then waits for changes of folders and files. What it knows of a file is
// kept in the store, for this machine: a file that has not changed since costs one stat at the next
// start, and none while Run waits. The state of a file is written after its messages and its source, so
// after a process was killed a file is read again, and what the store has is found.
//
// The files of the package use one another in one direction, from the top:
//
//	follow, list                              Run, List
//	start, changes                            what a run begins with; reported changes, and polling
//	read, scan, outdated                      a file, a folder, the recorded lines of a file
//	compressed, lines, import                 the kinds of files: compressed, read by lines, read as a whole
//	mark_read, queue, save, readers, settle   what a run remembers of a file, which file is next
//	run                                       the fields of a run
//	watch, file, taking, recorder, state      one thing each: none of them knows the run
//
// Nothing of an agent is changed. Links that lead out of a folder are not followed. What is wrong
// with a file is part of its state, and does not stop the others. What an agent deletes stays in the
// store; a thread that was deleted in the store is not brought back by its file.
package follow
