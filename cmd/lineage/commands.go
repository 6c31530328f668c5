package main

import (
	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/branches"
	"github.com/lineage-store/lineage/cmd/lineage/internal/conversations"
	"github.com/lineage-store/lineage/cmd/lineage/internal/databases"
	"github.com/lineage-store/lineage/cmd/lineage/internal/history"
	"github.com/lineage-store/lineage/cmd/lineage/internal/maintenance"
	"github.com/lineage-store/lineage/cmd/lineage/internal/serving"
	"github.com/lineage-store/lineage/cmd/lineage/internal/sources"
)

// groups are the groups of commands in the help.
func groups() []group {
	return []group{
		{"agents", "Sessions of agents", []func(*app.App) *cobra.Command{
			sources.FollowCommand, history.UsageCommand, sources.ResumeCommand, serving.MCPCommand,
		}},
		{"serve", "Page and API", []func(*app.App) *cobra.Command{
			serving.ServeCommand, serving.TokenCommand,
		}},
		{"start", "Stores and threads", []func(*app.App) *cobra.Command{
			maintenance.InitCommand, maintenance.InfoCommand, conversations.ThreadCommand, sources.ImportCommand, sources.ExportCommand, sources.BundleCommand,
		}},
		{"read", "Read", []func(*app.App) *cobra.Command{
			history.LogCommand, history.ShowCommand, history.TreeCommand, history.ContextsCommand, history.CatCommand, history.DocumentCommand, history.DiffCommand, history.CommonPrefixCommand, history.ResolveCommand,
			history.SearchCommand, history.WhereCommand, history.ProvenanceCommand, history.ReflogCommand, history.WatchCommand,
		}},
		{"write", "Write", []func(*app.App) *cobra.Command{
			history.AppendCommand, history.EditCommand, history.SetCommand, conversations.ValueCommand, history.SummarizeCommand, history.SendCommand,
		}},
		{"branch", "Branch", []func(*app.App) *cobra.Command{
			branches.ForkCommand, branches.SubagentCommand, branches.ReturnCommand, branches.AlternativesCommand, branches.ChooseCommand, branches.BranchCommand, branches.SwitchCommand,
			branches.RenameCommand, branches.DeleteCommand, branches.RewindCommand, branches.AsideCommand, branches.CheckpointCommand, branches.RestoreCheckpointCommand,
			branches.MergeCommand, branches.UndoCommand,
		}},
		{"sql", "Databases", []func(*app.App) *cobra.Command{
			databases.ProjectCommand, databases.CompareCommand,
		}},
		{"maintain", "Maintain", []func(*app.App) *cobra.Command{
			maintenance.StatsCommand, maintenance.VerifyCommand, maintenance.RepairCommand, maintenance.PackCommand, maintenance.GcCommand, maintenance.EraseCommand, maintenance.BackupCommand, maintenance.RestoreCommand, maintenance.CopyCommand, maintenance.SalvageCommand,
		}},
		{"program", "Program", []func(*app.App) *cobra.Command{
			versionCommand, completionCommand,
		}},
	}
}

// group is a group of commands in the help.
type group struct {
	id, title string
	commands  []func(*app.App) *cobra.Command
}
