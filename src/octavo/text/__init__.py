"""Pure work on texts for the file tools: parts, edits, diffs, patches, outlines, budgets. Strings in, values out:
nothing here opens, asks or waits. All of it takes time in proportion to the text, whatever the text says."""
