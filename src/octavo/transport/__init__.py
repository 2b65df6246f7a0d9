"""How clients reach the pipeline."""

import octavo.transport.mcp as _  # noqa: F401  # first: it says how the SDK is imported, of which the others take parts
