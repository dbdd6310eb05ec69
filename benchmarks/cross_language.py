"""Korean questions, English pages: does a question find the passage that answers it in another language?

    python benchmarks/cross_language.py [--data FOLDER] [--keep FOLDER] [--fusion rrf|convex]

The corpus is the Kubernetes documentation in both languages. The pages asked for exist in English only, while hundreds
of Korean pages about the same matters compete with them. Counts in how many cases one of the first three hits is of the
right page.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import measuring

import kebab

PARTS = ("concepts", "tasks", "tutorials")
QUESTIONS = {
    "노드를 안전하게 비우려면 어떻게 해야 하나요?": "tasks/administer-cluster/safely-drain-node.md",
    "저장된 시크릿 데이터를 암호화하는 방법": "tasks/administer-cluster/encrypt-data.md",
    "이미 암호화된 데이터를 다시 복호화하려면?": "tasks/administer-cluster/decrypt-data.md",
    "스왑 메모리는 어떻게 관리되나요?": "concepts/cluster-administration/swap-memory-management.md",
    "이름 풀이가 안 될 때 DNS 문제를 진단하는 방법": "tasks/administer-cluster/dns-debugging-resolution.md",
    "컨테이너가 살아 있는지, 준비되었는지 검사하는 방법": "concepts/workloads/pods/probes.md",
    "컨트롤 플레인 없이 kubelet이 직접 관리하는 파드": "concepts/workloads/pods/static-pods.md",
    "파드의 수평 자동 확장은 어떻게 동작하나요?": "concepts/workloads/autoscaling/horizontal-pod-autoscale.md",
    "파드의 자원 요청량을 자동으로 조정하는 수직 확장": "concepts/workloads/autoscaling/vertical-pod-autoscale.md",
    "실행 중인 파드의 CPU와 메모리 크기를 바꾸려면?": "tasks/configure-pod-container/resize-pod-resources.md",
    "여러 컨테이너가 프로세스 네임스페이스를 공유하도록 설정": "tasks/configure-pod-container/share-process-namespace.md",
    "컨테이너 시작과 종료 시점에 핸들러 실행하기": "tasks/configure-pod-container/attach-handler-lifecycle-event.md",
    "중단 예산을 설정해서 애플리케이션을 보호하는 방법": "tasks/run-application/configure-pdb.md",
    "인증 기관 인증서를 수동으로 교체하는 절차": "tasks/tls/manual-rotation-of-ca-certificates.md",
    "시스템 콜을 제한하는 seccomp 튜토리얼": "tutorials/security/seccomp.md",
    "클러스터가 사용하는 컨테이너 런타임을 알아내려면?": "tasks/administer-cluster/migrating-from-dockershim/find-out-runtime-you-use.md",
    "도커에서 containerd로 런타임을 바꾸는 방법": "tasks/administer-cluster/migrating-from-dockershim/change-runtime-containerd.md",
    "서명된 이미지의 서명을 검증하려면?": "tasks/administer-cluster/verify-signed-artifacts.md",
    "API 서버 요청이 몰릴 때 우선순위와 공정성으로 제어하기": "concepts/cluster-administration/flow-control.md",
    "소유자 오브젝트와 종속 오브젝트의 관계": "concepts/overview/working-with-objects/owners-dependents.md",
    "스케줄러를 플러그인으로 확장하는 프레임워크": "concepts/scheduling-eviction/scheduling-framework.md",
    "kubeadm으로 만든 클러스터에 리눅스 노드를 추가하기": "tasks/administer-cluster/kubeadm/adding-linux-nodes.md",
    "커스텀 리소스 정의의 버전을 관리하는 방법": "tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning.md",
    "파드와 컨테이너의 보안 컨텍스트 설정": "tasks/configure-pod-container/security-context.md",
    "시스템 데몬을 위해 컴퓨팅 자원을 예약하기": "tasks/administer-cluster/reserve-compute-resources.md",
    "클러스터의 토폴로지 관리 정책을 노드에서 제어하기": "tasks/administer-cluster/topology-manager.md",
}
TOP = 3


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep the database here and use it again")
    options.add_argument("--fusion", default="rrf")
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        folder = chosen.keep or work
        database = folder / "k8s-both.sqlite"
        if not database.exists():
            fill(chosen.data, folder, database)
        report(database, chosen.fusion)


def fill(data: Path, folder: Path, database: Path) -> None:
    """An interrupted run of this is lost: the database gets its name at the end."""
    unfinished = database.with_suffix(".unfinished")
    for name in ("k8s-en", "k8s-ko"):
        tree = measuring.unpack(data, name, folder)
        target = folder / "pages" / name
        for part in PARTS:
            shutil.copytree(tree / "docs" / part, target / part, dirs_exist_ok=True)
        measuring.run([measuring.kb(), "--db", str(unfinished), "ingest", str(target), "--quiet"])
    unfinished.rename(database)


def report(database: Path, fusion: str) -> None:
    rows, found = [], 0
    with kebab.open(database) as kb:
        for question, path in QUESTIONS.items():
            hits = list(kb.search(question, k=10, fusion=fusion))
            rank = next((hit.rank for hit in hits if hit.source == "k8s-en" and hit.doc_path == path), None)
            found += rank is not None and rank <= TOP
            rows.append([question, path, rank or "–"])
    measuring.table(["question", "page", "rank"], rows)
    print(f"\n{found} of {len(QUESTIONS)} among the first {TOP}")


if __name__ == "__main__":
    main()
