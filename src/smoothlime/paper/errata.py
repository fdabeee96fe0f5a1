"""Errors of the paper, each with what is true instead and a short proof in our own words.

G bounds the gradient, B is the width of the range of f, N(x, σ²I) is the neighbourhood, φ and Φ are the density and the
distribution function of the standard normal. Plain text: whoever shows it escapes it. docs/theory has the long form.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Erratum:
    """What the paper says at a place, what is wrong with it, what is right, and why."""

    title: str
    where: str
    says: str
    wrong: str
    right: str
    proof: str


ERRATA = (
    Erratum(
        title="Equivalence needs more than a gradient almost everywhere",
        where="Theorem 1; Lemma 1 in Appendix A",
        says="SmoothGrad = C-LIME = Σ⁻¹ cov(a, f(a)) for any function; Stein's lemma is stated for partial "
        "derivatives that exist almost everywhere and are integrable.",
        wrong="A step f(a) = 1 for a > 0, else 0, at x = 0 with σ = 1 has gradient 0 almost everywhere, so "
        "SmoothGrad is 0; C-LIME is φ(0) = 0.3989. Trees, rounding, hard decisions and detached branches are of "
        "this kind. Continuity does not save it: the Cantor function has gradient 0 almost everywhere, too.",
        right="C-LIME = Σ⁻¹ cov(a, f(a)) whenever E f(a)² is finite. SmoothGrad equals it if f is weakly "
        "differentiable (locally Lipschitz is enough: ReLU, ELU, sigmoid and softmax networks) and E‖∇f(a)‖ is "
        "finite.",
        proof="For the step, cov(a, f(a)) = E[a; a > 0] = ∫₀^∞ a φ(a) da = φ(0). In general integrate by parts "
        "along each axis, with φ′(a) = −a φ(a): every jump of f leaves a term of its own, which the gradient does "
        "not see. One jump of height h at distance s along an axis leaves h φ(s/σ)/σ.",
    ),
    Erratum(
        title="The Lipschitz constant is too small",
        where="Theorem 2; Lemmas 4 and 5 in Appendix A",
        says="If the gradient is bounded by G, both explanations are Lipschitz with L = G/(2σ).",
        wrong="f(a) = G|a| in one dimension has SmoothGrad(x) = G(2Φ(x/σ) − 1), with slope √(2/π) G/σ = 0.798 G/σ "
        "at 0: larger than 0.5 G/σ by the factor 2√(2/π) = 1.596. The proof takes ∫|p − q| for the total variation "
        "distance, which is half of it; Pinsker's inequality bounds the half.",
        right="L = √(2/π) G/σ, and no smaller constant will do. For C-LIME, Theorem 1 has to apply; without it, an "
        "f with range B gives L = √(2/(πe)) B/σ² = 0.484 B/σ², jumps included.",
        proof="Let z be standard normal, u and v unit vectors. The derivative of u·SmoothGrad in direction v is "
        "E[(u·∇f(x + σz)) (v·z)]/σ, at most G E|v·z|/σ = √(2/π) G/σ. f(a) = G|v·(a − x)| attains it.",
    ),
    Erratum(
        title="The sample size of SmoothGrad is right, its proof is not",
        where="Proposition 1; Appendix B",
        says="n ≥ C (G/ε)² ln(d/δ) gradients give an L2 error of at most ε with probability 1 − δ; the proof bounds "
        "every coordinate by ε/√d and adds up.",
        wrong="Hoeffding's inequality for one coordinate, of range 2G, at accuracy ε/√d and level δ/d takes n ≥ 2d "
        "(G/ε)² ln(2d/δ): the road taken costs a factor d that the statement does not have.",
        right="n ≥ 2 (G/ε)² ln(2/δ): the statement is true, with an explicit constant and without d.",
        proof="For h in a ball of radius G with mean μ and any fixed vector s, E cosh(λ‖s + h − μ‖) ≤ exp(λ²G²/2) "
        "cosh(λ‖s‖): with g = s − μ and τ = g·h/(‖g‖G), ‖g + h‖² ≤ ‖g‖² + 2‖g‖Gτ + G²; cosh(λ√y) is convex and "
        "increasing in y, so τ = ±1 with the same mean is the worst case, and Hoeffding's lemma bounds that one. "
        "Over n draws, P(‖mean − μ‖ ≥ ε) ≤ 2 exp(nλ²G²/2 − nλε); λ = ε/G² makes this 2 exp(−nε²/(2G²)).",
    ),
    Erratum(
        title="The sample size of C-LIME is wrong for every constant",
        where="Theorem 3; Appendix B",
        says="n ≥ C d ln(d/δ) / min(εσ², εσ³/‖x‖, ‖x‖, 1/σ²)² perturbations give an L2 error of at most ε, for f "
        "with values in [−1, 1] and some absolute constant C.",
        wrong="The condition changes with the unit of the features; the event does not. Besides, the proof treats "
        "least squares without an intercept, which is another estimator: for f = 1, x = e₁ and σ = 1 it gives 0.5 "
        "e₁ where C-LIME gives 0. At x = 0 the condition divides by zero.",
        right="n ≥ κ (B/(2σε))² (√d + √(2 ln(1/δ)))², κ = 1.61, is enough for the mean of Σ⁻¹(a − x)(f(a) − c) with "
        "known Σ and c the middle of the range; least squares itself takes somewhat more. Only εσ matters, and x "
        "does not. The rate d/(εσ)² cannot be improved in general.",
        proof="Measure features in a unit s times smaller: x and σ become s times larger, slopes and ε s times "
        "smaller, and the same draws give the same event. From d = σ = ‖x‖ = 1 the four terms of the minimum become "
        "εs, εs, s and s⁻². With s = ε^(−1/3) the least is ε^(2/3), so the theorem asks for n of order ε^(−4/3). By "
        "the central limit theorem an error ε takes n of order ε^(−2), unless f is linear. So for every C the "
        "promise fails once ε is small enough; the claims above show how "
        "often it fails with C = 1, ε = 0.01 and δ = 0.05.",
    ),
    Erratum(
        title="Robustness curves do not tend to zero",
        where="Section 6.3, Figure 3",
        says="The average maximum distance between the explanations of a point and of its neighbours approaches "
        "zero, and SmoothGrad is more robust than C-LIME.",
        wrong="With the number of perturbations the distance tends to that of the two expected explanations, which "
        "is not zero unless the smoothed model has the same gradient at both points. What falls is the noise of "
        "sampling.",
        right="For the same points, both curves tend to the same positive limit, at most the Lipschitz bound times "
        "the distance of the points. A method may be there sooner because it is less noisy, not because it is "
        "more robust.",
        proof="By the law of large numbers SGₙ(x) − SGₙ(x′) → SG(x) − SG(x′) = ∇F(x) − ∇F(x′) for the smoothed "
        "model F. By Theorem 1 the limit is the same for C-LIME. For a quadratic f the mean squared error of C-LIME "
        "is (d + 4)/2 times that of SmoothGrad, to leading order in n.",
    ),
    Erratum(
        title="The penalty of regularised C-LIME is per draw",
        where="Appendix D, the lemma on L2 regularisation",
        says="Regularised C-LIME is (Σ + λI)⁻¹ cov(a, f(a)).",
        wrong="Nothing, for the mean of the squared errors plus λ‖w‖². Solvers that take the sum of the squared "
        "errors plus α‖w‖² do not converge to it for a fixed α: their λ is α/n, which tends to 0.",
        right="α = nλ for a sum of squares, λ times the sum of the weights for a weighted one. With Σ = σ²I the "
        "result is σ²/(σ² + λ) times C-LIME: it equals SmoothGrad only after this shrinkage is undone.",
        proof="Setting the derivative of (1/n)Σᵢ(fᵢ − b − w·aᵢ)² + λ‖w‖² to zero gives (Σₙ + λI) w = covₙ. "
        "Multiplied by n, the objective is the sum of squares plus nλ‖w‖², with the same minimum.",
    ),
    Erratum(
        title="The accuracy on the simulated data is out of reach",
        where="Section 6.1",
        says="99.50% test accuracy, for two classes N((−1, −1), I) and N((1, 1), I).",
        wrong="No classifier is right more often than Φ(√2) = 92.1% of the time on data so described. Even the best "
        "one gets 199 or more of 200 test points right with probability 1.4·10⁻⁶.",
        right="Expect about 92%. An accuracy of 99.5% would fit a variance of 0.30 in place of 1.",
        proof="The best rule is the sign of a₁ + a₂, which for class 1 is normal with mean 2 and variance 2. It is "
        "right with probability Φ(2/√2) = Φ(√2). With variance v it is Φ(√(2/v)), which is 0.995 at v = 0.30.",
    ),
    Erratum(
        title="Dimensions and accuracies of the two public data sets",
        where="Sections 6.1 and 6.4",
        says="Bankruptcy: 15 dimensions after categorical features are discarded, 96.30% accuracy, and 86% for a "
        "model of 16 epochs. Shopping: 10 numerical features, then 11 dimensions, 99.8% accuracy.",
        wrong="Of 10,503 companies 10,008 did not go bankrupt: always saying so is right in 95.3% of the cases, "
        "just below the good model and well above the weak one. The public features are described as real-valued, "
        "so it is unclear which were discarded. Ten features cannot become eleven by discarding; 84.5% of the "
        "shopping sessions are of one class, and 99.8% is far above the 90.7% that one published study reports.",
        right="Read accuracies beside the share of the majority class, and report balanced accuracy or the area "
        "under the ROC curve. We take 99.8% as no target.",
        proof="10008/10503 = 0.9529. The rest is a comparison of published descriptions.",
    ),
    Erratum(
        title="Plots and theorems measure different distances",
        where="Section 6, Figures 2 to 5",
        says="The theorems bound L2 distances; the figures show L1 distances.",
        wrong="The two differ by up to √d: an L1 curve above an L2 bound contradicts nothing, and L1 distances of "
        "data sets with different numbers of features are not on one scale.",
        right="‖v‖₂ ≤ ‖v‖₁ ≤ √d ‖v‖₂. We draw L1 where the paper does, and L2 beside every bound.",
        proof="The right inequality is that of Cauchy and Schwarz for |v| and the vector of ones; equality for v = "
        "(1, …, 1).",
    ),
    Erratum(
        title="Smaller slips",
        where="Throughout",
        says="Σ ∈ ℝᵈ × ℝᵈ, and Σ ∈ ℝᵈ in Proposition 1; the derivative index of Stein's lemma runs to n; LIME for "
        "C-LIME in Theorem 1; E[(aaᵀ)⁻¹ a f] for C-LIME, and 1/n outside the inverse; λ_min(A) = λ_max(−A); ln(δ); "
        "KL of two vectors; (w·a)(x·a).",
        wrong="Misprints, harmless for the results above. Proposition 3 is stated for linear f, but its proof is "
        "about f(x) = g(θ·x + c), with g never defined and a used for both coefficients and draws.",
        right="Σ ∈ ℝᵈˣᵈ; the index runs to d; E[aaᵀ]⁻¹ E[a f], and 1/n inside; −λ_max(−A); ln(1/δ); KL of the two "
        "distributions; (w·a)(w·a). In Proposition 3, k = 1 for linear f; for g(θ·x + c), k(x) = E g′, which may "
        "vanish or be negative.",
        proof="∇(θ·x + c) = θ for every draw; ∇g(θ·x + c) = g′(θ·x + c) θ, whose mean is θ E g′.",
    ),
)
