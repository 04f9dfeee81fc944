"""`comesh schema`: the JSON Schema of the deployment document, for editors."""

from comesh.cli.terminal import print_json
from comesh.deployment.schema import document_schema


def schema() -> None:
    """Print the JSON Schema of documents, for editors."""
    print_json(document_schema())
