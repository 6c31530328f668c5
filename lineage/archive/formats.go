package archive

// Formats returns the formats of this package, those with the most reliable detection first.
func Formats() []Format {
	return []Format{
		chatGPT(),
		claudeAI(),
		openWebUI(),
		libreChat(),
		codex(),
		claudeCode(),
		pi(),
		copilot(),
		gooseLines(),
		qwen(),
		gemini(),
		vscode(),
		promptLogs(),
		branchFiles(),
		oasst(),
		preferences(),
		turns(),
		shareGPT(),
		chatLists(), // anything else with lists of messages
	}
}
