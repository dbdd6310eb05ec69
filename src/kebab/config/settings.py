"""Every setting: its type, default, bounds and one line of documentation.

The annotations carry the documentation and the bounds. They are evaluated only by `all_settings`, so a search without a
config file does not pay for them.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_type_hints

from kebab.core.search import DEFAULT_K, DUPLICATES, FUSIONS, MATCHES, MAX_K, MOST_RERANKED, RRF_K, SNIPPET_CHARS


class Bounds(NamedTuple):
    least: float
    most: float


class OneOf(NamedTuple):
    choices: tuple[str, ...]


class Form(NamedTuple):
    """What a text must look like: a regular expression, and the same in words."""

    form: str
    form_words: str


class Alias(NamedTuple):
    """A second name of a setting, in its section."""

    alias: str


class Secret(NamedTuple):
    """Marks a setting that is never shown."""

    secret: bool = True


class ChangesIndex(NamedTuple):
    """Marks a setting after whose change every document is indexed again."""

    changes_index: bool = True


_Endpoint = Annotated[
    str,
    "Address of the endpoint; empty means http://127.0.0.1:11434 for ollama and https://api.openai.com/v1 for openai.",
    Form(r"(https?://.+)?", "an address that begins with http:// or https://"),
]


class StoreSettings(NamedTuple):
    path: Annotated[str, "The database file; empty means the nearest .kebab folder, else the user's data folder."] = ""
    busy_timeout_ms: Annotated[
        int, "How long a statement waits for another process's transaction.", Bounds(0, 600_000)
    ] = 5000
    lock_wait_s: Annotated[float, "How long a second writer waits before it says who is writing.", Bounds(0, 3600)] = (
        10.0
    )
    url: Annotated[
        str, "A Qdrant cluster instead of a file: `qdrant://HOST:PORT/NAME`, with `?tls=true` where it speaks TLS."
    ] = ""
    api_key: Annotated[str, "Key for the cluster; best given as KEBAB_STORE_API_KEY.", Secret()] = ""
    timeout_s: Annotated[float, "How long one request to the cluster may take.", Bounds(0.1, 3600)] = 30.0
    shards: Annotated[
        int,
        "Parts that a new collection is divided into; more than nodes, so that it can grow. 0: one for each node.",
        Bounds(0, 10_000),
    ] = 0
    replicas: Annotated[int, "Copies of each part; with 2, one node may fail.", Bounds(1, 100)] = 1
    write_consistency_factor: Annotated[
        int, "Copies that must have a write before it counts as done.", Bounds(1, 100)
    ] = 1
    quantization: Annotated[
        str,
        "Smaller vectors, to compare first: scalar takes a half of the memory, binary a sixteenth; the best are "
        "compared again exactly.",
        OneOf(("none", "scalar", "binary")),
    ] = "none"
    on_disk: Annotated[bool, "Leave vectors and all indexes in the cluster on disk; texts always are."] = False


class IngestSettings(NamedTuple):
    max_file_mb: Annotated[float, "Larger files are skipped and counted.", Bounds(0.001, 4096)] = 64.0
    max_seconds: Annotated[float, "How long reading one PDF, office file or e-book may take.", Bounds(0.1, 86_400)] = (
        120.0
    )
    max_memory_mb: Annotated[int, "How much memory reading one of those may take.", Bounds(128, 1_048_576)] = 2048
    pdf_password: Annotated[str, "Password for encrypted PDFs; best given as KEBAB_INGEST_PDF_PASSWORD.", Secret()] = ""
    hidden: Annotated[bool, "Also read files and folders whose name begins with a dot."] = False
    follow_links: Annotated[bool, "Follow symbolic links found while walking; loops are noticed."] = False
    ignore_files: Annotated[bool, "Obey .gitignore and .kebabignore."] = True


class ChunkingSettings(NamedTuple):
    target_tokens: Annotated[
        int, "A chunk is closed when the next block would make it longer than this.", Bounds(32, 8192), ChangesIndex()
    ] = 384
    max_tokens: Annotated[
        int,
        "No chunk is longer than this with its title and headings; the default model takes 512.",
        Bounds(64, 8192),
        ChangesIndex(),
    ] = 480
    min_tokens: Annotated[int, "A section shorter than this joins its neighbour.", Bounds(0, 8192), ChangesIndex()] = (
        128
    )
    overlap_tokens: Annotated[
        int,
        "When a long block is split, each part repeats about this much of the one before.",
        Bounds(0, 200),
        ChangesIndex(),
    ] = 0


class AnalysisSettings(NamedTuple):
    korean: Annotated[
        str, "How Korean is cut into terms; morphemes needs the extra `korean`.", OneOf(("bigrams", "morphemes"))
    ] = "bigrams"


class EmbeddingSettings(NamedTuple):
    model: Annotated[
        str,
        "What makes vectors: `bundled`, `none`, `onnx:FOLDER`, `openai:MODEL` (any endpoint that speaks its API) "
        "or `ollama:MODEL`.",
        Form(
            r"\s*(bundled|none|(onnx|openai|ollama):.+)\s*",
            "bundled | none | onnx:FOLDER | openai:MODEL | ollama:MODEL",
        ),
    ] = "bundled"
    multilingual: Annotated[
        str,
        "The bundled model for text in other scripts than Latin, and across languages: `use` (Universal Sentence "
        "Encoder), fast, or `e5` (multilingual-e5-small, with the extra `e5`), slower, better within a language and "
        "worse across languages. After a change: `kb index --rebuild-vectors`.",
        OneOf(("use", "e5")),
    ] = "use"
    cross_language: Annotated[
        str,
        "Whether a question in one script finds text in another by meaning. auto: questions in Korean, Japanese, "
        "… find English text once the corpus has text in such a script, and English questions find such text "
        "where there is no other; on: always.",
        OneOf(("auto", "on", "off")),
    ] = "auto"
    scripts: Annotated[
        str,
        "What a model of your own reads: all, or latin (text in other scripts then goes to the bundled model). "
        "auto looks at the tokenizer of onnx:FOLDER, and takes an endpoint's model to read all.",
        OneOf(("auto", "all", "latin")),
    ] = "auto"
    threads: Annotated[int, "Processors a model may use; 0 means all.", Bounds(0, 256)] = 0
    endpoint: _Endpoint = ""
    api_key: Annotated[str, "Key for the endpoint; best given as KEBAB_EMBEDDING_API_KEY.", Secret()] = ""
    timeout_s: Annotated[float, "How long one request to the endpoint may take.", Bounds(0.1, 3600)] = 60.0
    retries: Annotated[int, "How often a request that failed for a passing reason is sent again.", Bounds(0, 20)] = 3
    batch_size: Annotated[int, "Texts in one request to the endpoint.", Bounds(1, 2048)] = 64
    pooling: Annotated[
        str, "For onnx:FOLDER: how the vectors of a text's tokens become one.", OneOf(("mean", "cls"))
    ] = "mean"
    max_tokens: Annotated[
        int, "For onnx:FOLDER: how many tokens the model takes; longer text is embedded in parts.", Bounds(16, 32768)
    ] = 512
    query_prefix: Annotated[str, "Written before every query, where a model wants that."] = ""
    passage_prefix: Annotated[str, "Written before every passage, where a model wants that."] = ""


class SearchSettings(NamedTuple):
    default_k: Annotated[int, "How many hits a search returns.", Bounds(1, MAX_K), Alias("default_top")] = DEFAULT_K
    timeout_s: Annotated[float, "How long one search may take before it is stopped.", Bounds(0.1, 3600)] = 30.0
    snippet_chars: Annotated[int, "Longest snippet, in characters.", Bounds(16, 4000)] = SNIPPET_CHARS
    match: Annotated[str, "All words, any of them, or all first and any when that gives too few.", OneOf(MATCHES)] = (
        "auto"
    )
    hybrid_fusion: Annotated[
        str, "How lexical and vector hits become one list: by their ranks, or by their scores.", OneOf(FUSIONS)
    ] = "rrf"
    rrf_k: Annotated[
        int, "The constant of reciprocal rank fusion: the larger, the less the first ranks stand out.", Bounds(1, 1000)
    ] = RRF_K
    rerank: Annotated[
        int,
        "How many of the best passages a cross-encoder puts in order; 0: none. Better and slower; needs the extra "
        "`rerank`, or a model of your own (section rerank).",
        Bounds(0, MOST_RERANKED),
    ] = 0
    rerank_seconds: Annotated[
        float, "How long that may take; passages that were not reached stay in place.", Bounds(0.01, 3600)
    ] = 5.0
    vector_weight: Annotated[float, "Weight of a vector hit in rrf; a lexical hit has 1.", Bounds(0, 10)] = 1.0
    convex_weight: Annotated[float, "Share of the vector score in convex.", Bounds(0, 1)] = 0.65
    duplicates: Annotated[
        str,
        "Passages with the same text, but for a small edit in long ones. fold: the best one is shown and names "
        "the others; show: each is a hit of its own.",
        OneOf(DUPLICATES),
    ] = "fold"
    freshness: Annotated[
        str,
        "What a search looks at beside the index. hits: whether the files of its hits have changed since "
        "(`stale`); check: also whether any file has, which is said in a note; off: nothing.",
        OneOf(("hits", "check", "off")),
    ] = "hits"
    freshness_ms: Annotated[float, "How long check may look at files.", Bounds(1, 10_000)] = 100.0
    title_weight: Annotated[float, "Weight of the document title in lexical ranking.", Bounds(0, 100)] = 8.0
    heading_weight: Annotated[float, "Weight of the headings above a passage in lexical ranking.", Bounds(0, 100)] = 2.0
    text_weight: Annotated[float, "Weight of the passage itself in lexical ranking.", Bounds(0, 100)] = 1.0
    cjk_weight: Annotated[float, "Weight of Chinese, Japanese and Korean terms in lexical ranking.", Bounds(0, 100)] = (
        1.0
    )


class RerankSettings(NamedTuple):
    model: Annotated[
        str,
        "The cross-encoder: `bundled` (with the extra `rerank`; Latin script only), `onnx:FOLDER`, or `cohere:MODEL` "
        "(any endpoint that speaks that API: Jina, vLLM, llama.cpp, …).",
        Form(r"\s*(bundled|(onnx|cohere):.+)\s*", "bundled | onnx:FOLDER | cohere:MODEL"),
    ] = "bundled"
    endpoint: Annotated[
        str,
        "Address of the endpoint, to which /rerank is added; empty means https://api.cohere.com/v2.",
        Form(r"(https?://.+)?", "an address that begins with http:// or https://"),
    ] = ""
    api_key: Annotated[str, "Key for the endpoint; best given as KEBAB_RERANK_API_KEY.", Secret()] = ""


class LibrarySettings(NamedTuple):
    fetch_seconds: Annotated[
        float, "How long fetching one state of a repository, or a file, may take.", Bounds(1, 86_400)
    ] = 600.0
    fetch_mb: Annotated[
        int, "How large a fetched file, or all copies of one repository's states, may be.", Bounds(1, 1_048_576)
    ] = 2048
    organisations: Annotated[
        str,
        "Only libraries of these owners are added and found, parted by commas; empty means all.",
        Form(r"(?:\s*[^/\s,]+\s*(?:,\s*[^/\s,]+\s*)*)?", "owners parted by commas, such as acme, local"),
    ] = ""
    github_api: Annotated[
        str, "Where --fetch-metadata asks for stars.", Form(r"https?://\S+", "an http or https address")
    ] = "https://api.github.com"


class ServeSettings(NamedTuple):
    host: Annotated[
        str,
        "Where kb serve listens; anything but this machine itself needs serve.token.",
        Form(r"\S+", "a name or address"),
    ] = "127.0.0.1"
    port: Annotated[int, "The port; 0 takes a free one.", Bounds(0, 65_535)] = 8765
    token: Annotated[
        str,
        "What callers must show; best given as KEBAB_SERVE_TOKEN.",
        Form(r"([!-~]{16,})?", "16 or more letters, digits and signs, without spaces"),
        Secret(),
    ] = ""
    allowed_hosts: Annotated[
        str,
        "Names under which the server is called, besides its address, parted by commas.",
        Form(r"(?:\s*[^/\s,]+\s*(?:,\s*[^/\s,]+\s*)*)?", "names parted by commas, such as kebab.lan"),
    ] = ""
    max_body_kb: Annotated[int, "Larger requests are refused.", Bounds(1, 1_048_576)] = 1024
    timeout_s: Annotated[float, "How long a request may take to arrive, and then its answer.", Bounds(0.1, 3600)] = 30.0
    requests_per_second: Annotated[int, "How many requests one address may send, on average.", Bounds(1, 1_000_000)] = (
        1000
    )


class AskSettings(NamedTuple):
    model: Annotated[
        str,
        "What writes answers: empty for none (answers are quotations), `openai:MODEL` (any endpoint that speaks "
        "its API) or `ollama:MODEL`.",
        Form(r"\s*((openai|ollama):.+)?\s*", "empty | openai:MODEL | ollama:MODEL"),
    ] = ""
    endpoint: _Endpoint = ""
    api_key: Annotated[str, "Key for the endpoint; best given as KEBAB_ASK_API_KEY.", Secret()] = ""
    timeout_s: Annotated[
        float, "How long a model may take for an answer, from the question to its last word.", Bounds(0.1, 3600)
    ] = 120.0
    score_gate: Annotated[
        float,
        "Hits with a lower score, 0 to 1, are no evidence. Only a floor: whether there is an answer is decided "
        "by evidence.",
        Bounds(0, 1),
    ] = 0.05
    max_tokens: Annotated[int, "About how many tokens of passages an answer may rest on.", Bounds(64, 1_000_000)] = 3000
    answer_tokens: Annotated[int, "How many tokens a model may write.", Bounds(16, 100_000)] = 800
    unsupported: Annotated[
        str,
        "What becomes of an answer with a claim that no cited passage supports: the claim is marked, or there is "
        "no answer.",
        OneOf(("mark", "refuse")),
    ] = "mark"


class Settings(NamedTuple):
    store: StoreSettings = StoreSettings()
    ingest: IngestSettings = IngestSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    analysis: AnalysisSettings = AnalysisSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    search: SearchSettings = SearchSettings()
    rerank: RerankSettings = RerankSettings()
    library: LibrarySettings = LibrarySettings()
    serve: ServeSettings = ServeSettings()
    ask: AskSettings = AskSettings()


class SettingField(NamedTuple):
    """One setting as the loader, `config show` and the reference see it."""

    section: str
    name: str
    type: type
    default: Any
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    alias: str | None = None
    changes_index: bool = False
    secret: bool = False
    form: str = ""
    form_words: str = ""

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"KEBAB_{self.section}_{self.name}".upper()

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.choices:
            return " | ".join(f'"{choice}"' for choice in self.choices)
        if self.least is not None:
            return f"{self.least} to {self.most}"
        return self.form_words or ("true | false" if self.type is bool else "text")


def all_settings() -> list[SettingField]:
    fields = []
    for section, defaults in Settings()._asdict().items():
        for name, hint in get_type_hints(type(defaults), include_extras=True).items():
            doc, *details = hint.__metadata__
            field = SettingField(section, name, hint.__origin__, getattr(defaults, name), doc)
            fields.append(
                field._replace(**{key: value for detail in details for key, value in detail._asdict().items()})
            )
    return fields
