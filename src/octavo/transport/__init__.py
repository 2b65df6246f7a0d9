"""How clients reach the pipeline."""
