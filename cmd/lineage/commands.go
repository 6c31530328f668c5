package main

import "github.com/spf13/cobra"

// groups are the commands as help lists them.
func groups() []group {
	return []group{
		{"start", "Stores and threads", []func(*app) *cobra.Command{
			initCommand, infoCommand, followCommand, resumeCommand, threadCommand, importCommand, exportCommand, bundleCommand,
		}},
		{"read", "Read", []func(*app) *cobra.Command{
			logCommand, showCommand, treeCommand, contextsCommand, usageCommand, catCommand, documentCommand, diffCommand, commonPrefixCommand, resolveCommand,
			searchCommand, whereCommand, provenanceCommand, reflogCommand, watchCommand,
		}},
		{"write", "Write", []func(*app) *cobra.Command{
			appendCommand, editCommand, setCommand, valueCommand, summarizeCommand, sendCommand,
		}},
		{"branch", "Branch", []func(*app) *cobra.Command{
			forkCommand, subagentCommand, returnCommand, alternativesCommand, chooseCommand, branchCommand, switchCommand,
			renameCommand, deleteCommand, rewindCommand, asideCommand, checkpointCommand, restoreCheckpointCommand,
			mergeCommand, undoCommand,
		}},
		{"sql", "Databases", []func(*app) *cobra.Command{
			projectCommand, compareCommand,
		}},
		{"maintain", "Maintain", []func(*app) *cobra.Command{
			serveCommand, mcpCommand, tokenCommand, statsCommand, verifyCommand, repairCommand, packCommand, gcCommand, eraseCommand, backupCommand, restoreCommand, copyCommand, salvageCommand,
		}},
		{"program", "Program", []func(*app) *cobra.Command{
			versionCommand, completionCommand,
		}},
	}
}
