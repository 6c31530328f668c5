package archive

// Formats returns the formats that this package reads, those first that are told
// from others most surely.
func Formats() []Format {
	return []Format{
		chatGPT(),
		claudeAI(),
		openWebUI(),
		libreChat(),
		codex(),
		claudeCode(),
		promptLogs(),
		branchFiles(),
		oasst(),
		preferences(),
		turns(),
		shareGPT(),
		chatLists(), // whatever else has lists of messages
	}
}
